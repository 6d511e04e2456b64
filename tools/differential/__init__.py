"""Random scripts of client calls, put to this project's broker and to real Kafka 3.9.1; do the answers differ?"""
