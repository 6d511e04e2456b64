"""Specs of those records of the metadata log that are read, in the JSON form that Kafka describes its messages in.

Tagged fields that are not read are left out: a decoder skips unknown tags.
"""
