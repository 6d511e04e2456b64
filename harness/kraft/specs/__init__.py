"""Specs of those records of the metadata log that are read, in the JSON form that Kafka describes its messages in.

Tagged fields that nobody reads are left out: who decodes skips tags that it does not know.
"""
