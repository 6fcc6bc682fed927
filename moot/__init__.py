"""The front door of moot: its public names, loaded on first use.

`import moot` is cheap: it loads neither ray nor any vendor's SDK.
"""
