"""Does a broker crash, hang or leak memory, whatever bytes a client sends?"""
