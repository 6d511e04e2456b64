"""Records what an application's own Kafka clients do, as lines that `chaos judge` takes.

The page docs/how-to/record-your-clients.md shows how.

`recorder.confluent`, `recorder.kafka_python` and `recorder.aio` have a producer and a consumer each, which are those of
the library and write down what they do.
"""

from kafka_chaos.recorder.recording import Recorder

__all__ = ["Recorder"]
