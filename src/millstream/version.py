"""The version of Millstream. `import millstream` has it as `__version__`."""

VERSION = "0.1.0"
