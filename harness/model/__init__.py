"""The protocol as pure functions: which step may a replica, a leader, a controller or a group take next?"""
