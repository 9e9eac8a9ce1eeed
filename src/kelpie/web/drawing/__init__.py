"""Pictures of pages as SVG: pure functions from numbers to text, without scripts and styles of their own.

Classes of the style sheet give them their colours, so that they follow the dark or light theme, and the
strict policy of pages holds.
"""
