"""What every client of a load does, whatever carries it out: librdkafka in a real run, our own clients in a simulation.

Nothing here touches a socket, a clock or a client library. The rules say what is done next and write down what came of
it; a shell does it and answers (as with h11).
"""
