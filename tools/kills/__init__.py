"""What is left when an experiment, or a part of it, is killed at any instant?"""
