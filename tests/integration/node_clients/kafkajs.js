// A transactional producer as kafkajs has it; the commands are those of go_clients/franz.
//
//   node kafkajs.js SERVERS session|fence|late TOPIC TRANSACTIONAL-ID
//   node kafkajs.js SERVERS copy FROM TO GROUP TRANSACTIONAL-ID    until its input ends

const { Kafka, logLevel } = require('kafkajs')
const readline = require('readline')

const [servers, command, ...rest] = process.argv.slice(2)
const kafka = new Kafka({ brokers: servers.split(','), logLevel: logLevel.NOTHING, retry: { retries: 20, maxRetryTime: 1000 } })
const show = line => console.log(JSON.stringify(line))
const name = error => error.type || (error.cause && error.cause.type) || error.message

async function transactional(id, timeout = 60000) {
  const producer = kafka.producer({ transactionalId: id, maxInFlightRequests: 1, idempotent: true, transactionTimeout: timeout })
  await producer.connect()
  return producer
}

// Begins a transaction and writes the values from..to-1 in turn to three partitions.
async function write(producer, topic, from, to) {
  const transaction = await producer.transaction()
  const messages = []
  for (let value = from; value < to; value++) messages.push({ partition: value % 3, value: String(value) })
  await transaction.send({ topic, messages })
  return transaction
}

async function session(topic, id) {
  const producer = await transactional(id)
  for (const [number, end] of ['commit', 'abort', 'commit'].entries()) {
    await (await write(producer, topic, 10 * number, 10 * number + 10))[end]()
  }
  await producer.disconnect()
  show({ error: '' })
}

// Has a second producer take over the id of the first, which then tries to commit.
async function fence(topic, id) {
  const first = await transactional(id)
  const open = await write(first, topic, 0, 10)
  const second = await transactional(id)
  await (await write(second, topic, 10, 20)).commit()
  await open.commit().then(() => show({ error: '' }), error => show({ error: name(error) }))
}

// Commits a transaction that the coordinator has aborted, once a line comes in.
async function late(topic, id) {
  const open = await write(await transactional(id, 1000), topic, 0, 10)
  show({ written: true })
  await new Promise(resolve => readline.createInterface({ input: process.stdin }).once('line', resolve))
  await open.commit().then(() => show({ error: '' }), error => show({ error: name(error) }))
}

async function copy(from, to, groupId, id) {
  const producer = await transactional(id, 30000)
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, readUncommitted: false })
  await consumer.connect()
  await consumer.subscribe({ topics: [from], fromBeginning: true })
  let turn = Promise.resolve() // one transaction at a time
  const inTurn = work => (turn = turn.then(work, work))
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: 1,
    eachBatch: ({ batch, resolveOffset, isRunning, isStale }) => inTurn(async () => {
      for (let at = 0; at < batch.messages.length && isRunning() && !isStale(); at += 20) {
        const records = batch.messages.slice(at, at + 20)
        const transaction = await producer.transaction()
        try {
          const messages = records.map(each => ({ partition: batch.partition, value: each.value }))
          await transaction.send({ topic: to, messages })
          const offset = String(Number(records[records.length - 1].offset) + 1)
          const topics = [{ topic: from, partitions: [{ partition: batch.partition, offset }] }]
          await transaction.sendOffsets({ consumerGroupId: groupId, topics })
          await transaction.commit()
        } catch (error) {
          show({ failed: name(error) })
          await transaction.abort().catch(again => show({ failed: name(again) }))
          throw error
        }
        resolveOffset(records[records.length - 1].offset)
        show({ copied: records.length })
      }
    }),
  })
  await new Promise(resolve => process.stdin.resume().once('end', resolve))
  await consumer.disconnect()
  await producer.disconnect()
}

const commands = { session, fence, late, copy }
commands[command](...rest).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
