"""Encode texts with a library of another virtual environment: `python oracle.py library tokenizer-file texts.json`.

Print the ids as JSON. The exit status is 3 if the library cannot load the file.
"""

import json
import sys
from pathlib import Path

library, path, texts = sys.argv[1:]


def load():
    if library == "tokenizers":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(path)
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tekkenizer = Tekkenizer.from_file(path)
    return lambda text: tekkenizer.encode(text, bos=False, eos=False)


try:
    encode = load()
    encode("a")  # tokenizers 1.0 compiles patterns only now
except Exception as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(3)
print(json.dumps([encode(text) for text in json.loads(Path(texts).read_text(encoding="utf-8"))]))
