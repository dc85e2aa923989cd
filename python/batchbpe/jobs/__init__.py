"""Long jobs over many files: counting and encoding that can be interrupted and resumed."""
