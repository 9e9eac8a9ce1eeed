"""`kelpie mcp`: answers for assistants over the Model Context Protocol. It reads, and changes nothing.

sources    which clusters, evidence and tables may be asked: those of the command line, and no others
answers    what tools return: declared, bounded, with the evidence that it rests on
server     the tools
"""
