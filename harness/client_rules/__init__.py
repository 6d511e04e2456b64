"""The rules of a load's clients, for two shells: librdkafka in a real run, and own clients in a simulation.

Nothing here touches a socket, a clock or a client library. The rules yield the next step and record its result;
a shell carries it out and answers (as with h11).
"""
