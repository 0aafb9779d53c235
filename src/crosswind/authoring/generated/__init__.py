"""Generated domains: `generated:SPLIT-SEED` is a domain that is made of its name alone, in words and structures that
no other split has.

`tables` draws what there is, `chains` what is asked for, `requests` says it, `lexicon` has the words. The declaration
that comes out is built by the engine of YAML domains, and `kept` in the user's cache once it passed. docs/generated.md
is the user's page.
"""

from crosswind.authoring.generated.domain import declaration as declaration
from crosswind.authoring.generated.domain import load as load
