"""The demo: a stand-in frontier model, tickets for it to answer, an app that calls it, its replacement.

Uses Stepdown through its public interfaces alone: the OpenAI wire, the HTTP API and the command line.
"""
