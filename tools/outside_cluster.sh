#!/usr/bin/env bash
# A cluster of Apache Kafka on loopback that knows nothing of the harness, as the driver `external` finds one.
#   outside_cluster.sh up DIR JARS [BROKERS]   start brokers 1 to BROKERS (3); with ZooKeeper if JARS has it
#                                              (QuorumPeerMain), else three brokers are controllers too
#   outside_cluster.sh kill|stop|pause|resume|start DIR ID
#   outside_cluster.sh data|logs DIR ID INTO   copy a broker's log directory or its own logs; ID zookeeper: its data
#   outside_cluster.sh down DIR                end what was started in DIR
# `up` prints lines NAME=VALUE: id, bootstrap_servers, and zookeeper or controllers.
# Ports: BASE_PORT (default 39092) and those after it. DIR/extra.properties goes to the end of each broker's
# properties. DIR/environment is sourced: LISTENER_PROTOCOL (PLAINTEXT) and CONTROLLER_PROTOCOL name the protocols,
# JAVA_OPTIONS goes to each JVM, ZOOKEEPER_PROPERTIES to ZooKeeper's configuration. RELAYED=yes: each broker has one more
# listener, whose clients it leads through a relay; `up` prints relay=ID@LISTEN@TARGET,…
set -euo pipefail
command=${1:?up, kill, stop, pause, resume, start, data, logs or down}; dir=$(realpath -m "${2:?a folder}")
mkdir -p "$dir"; cd "$dir"
[ ! -f environment ] || . ./environment
base=${BASE_PORT:-39092}; zk_port=$((base + 20))
protocol=${LISTENER_PROTOCOL:-PLAINTEXT}; controllers_protocol=${CONTROLLER_PROTOCOL:-PLAINTEXT}

launch() { # ID CLASS CONFIG HEAP
  mkdir -p "$1.logs"
  # shellcheck disable=SC2086
  setsid java "-Xmx$4" -XX:TieredStopAtLevel=1 -cp "$(cat jars)/*" -Dkafka.logs="$dir/$1.logs" \
    -Dlog4j.configuration="file:$dir/log4j.properties" -Dlog4j2.configurationFile="$dir/log4j2.properties" \
    ${JAVA_OPTIONS:-} "$2" "$3" >>"$1.logs/out" 2>&1 </dev/null 7>&- 8>&- 9>&- &
  echo $! >"$1.pid"
}
start() {
  if [ "$1" = zookeeper ]; then
    launch zookeeper org.apache.zookeeper.server.quorum.QuorumPeerMain zookeeper.properties 192m
  else launch "$1" kafka.Kafka "$1.properties" 384m; fi
}
send() { kill "-$1" "$(cat "$2.pid")"; }
until_said() { # ID PATTERN
  for _ in $(seq 1200); do grep -qsE "$2" "$1.logs/server.log" "$1.logs/out" && return; sleep 0.1; done
  echo "$1 did not start; see $dir/$1.logs" >&2; exit 1
}

logging() {
  cat >log4j.properties <<P
log4j.rootLogger=INFO, f
log4j.appender.f=org.apache.log4j.FileAppender
log4j.appender.f.File=\${kafka.logs}/server.log
log4j.appender.f.layout=org.apache.log4j.PatternLayout
log4j.appender.f.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
P
  cat >log4j2.properties <<P
appender.f.type = File
appender.f.name = f
appender.f.fileName = \${sys:kafka.logs}/server.log
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = %d{ISO8601} %p %c: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.f.ref = f
P
  [ ! -f loggers ] || while read -r logger level; do
    echo "log4j.logger.$logger=$level" >>log4j.properties
    name=${logger//./_}
    printf 'logger.%s.name = %s\nlogger.%s.level = %s\n' "$name" "$logger" "$name" "$level" >>log4j2.properties
  done <loggers
}

configure() { # ID BROKERS VOTERS
  replicas=$(($2 < 3 ? $2 : 3)) listeners=CLIENTS://127.0.0.1:$((base + $1))
  [ -z "${RELAYED:-}" ] || listeners+=,RELAYED://127.0.0.1:$((base + 3 + $1))
  cat >"$1.properties" <<P
log.dirs=$dir/$1.data
auto.create.topics.enable=false
default.replication.factor=$replicas
offsets.topic.replication.factor=$replicas
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
P
  [ -z "${RELAYED:-}" ] || echo "advertised.listeners=${listeners%:*}:$((base + 6 + $1))" >>"$1.properties"
  if [ -n "$3" ]; then
    cat >>"$1.properties" <<P
node.id=$1
process.roles=broker,controller
controller.quorum.voters=$3
controller.listener.names=CONTROLLER
listeners=$listeners,CONTROLLER://127.0.0.1:$((base + 10 + $1))
listener.security.protocol.map=CLIENTS:$protocol,RELAYED:$protocol,CONTROLLER:$controllers_protocol
inter.broker.listener.name=CLIENTS
broker.session.timeout.ms=6000
P
  else
    cat >>"$1.properties" <<P
broker.id=$1
zookeeper.connect=127.0.0.1:$zk_port
zookeeper.session.timeout.ms=6000
listeners=$listeners
listener.security.protocol.map=CLIENTS:$protocol,RELAYED:$protocol
inter.broker.listener.name=CLIENTS
P
  fi
  [ ! -f extra.properties ] || cat extra.properties >>"$1.properties"
}

case $command in
up)
  realpath "${3:?the folder of the jars}" >jars; count=${4:-3}; voters= id=
  logging
  if compgen -G "$(cat jars)/zookeeper-*.jar" >/dev/null; then
    { printf 'dataDir=%s/zookeeper.data\nclientPort=%s\nclientPortAddress=127.0.0.1\n' "$dir" "$zk_port"
      printf 'admin.enableServer=false\ntickTime=500\n%b' "${ZOOKEEPER_PROPERTIES:-}"; } >zookeeper.properties
    start zookeeper
  else
    for n in $(seq "$count"); do voters+="$n@127.0.0.1:$((base + 10 + n)),"; done
    id=$(java -cp "$(cat jars)/*" -Dlog4j2.level=ERROR kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)
  fi
  for n in $(seq "$count"); do
    configure "$n" "$count" "${voters%,}"
    if [ -n "$id" ] && [ ! -e "$n.data/meta.properties" ]; then
      java -cp "$(cat jars)/*" kafka.tools.StorageTool format -t "$id" -c "$n.properties" >>format.out 2>&1
    fi
    start "$n"
  done
  for n in $(seq "$count"); do until_said "$n" '\[KafkaServer id=[0-9]+\] started|\[KafkaRaftServer nodeId=[0-9]+\] .*started|Kafka Server started'; done
  sed -n 's/^cluster.id=/id=/p' 1.data/meta.properties
  [ -z "${RELAYED:-}" ] || printf 'relay=%s\n' "$(for n in $(seq "$count"); do
    printf '%s@127.0.0.1:%s@127.0.0.1:%s,' "$n" $((base + 6 + n)) $((base + 3 + n)); done)"
  printf 'bootstrap_servers=%s\n' "$(seq -s, -f "127.0.0.1:%.0f" $((base + 1)) $((base + count)))"
  if [ -n "$voters" ]; then printf 'controllers=%s\n' "${voters%,}"; else printf 'zookeeper=127.0.0.1:%s\n' "$zk_port"; fi ;;
down)
  for file in *.pid; do
    [ -f "$file" ] || continue
    kill -KILL "$(cat "$file")" 2>/dev/null || true; rm -f "$file"
  done ;;
kill) send KILL "$3" ;; stop) send TERM "$3" ;; pause) send STOP "$3" ;; resume) send CONT "$3" ;; start) start "$3" ;;
data) cp -a "$3.data/." "$4/" ;;
logs) cp -a "$3.logs/." "$4/" ;;
*) echo "unknown command $command" >&2; exit 2 ;;
esac
