"""The access file, with the roles in each workspace: its models, its values, and the entry for a new token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from reconciler.access import rights as values
from reconciler.access.rights import Access, Token
from reconciler.core.schema import yaml
from reconciler.core.schema.errors import validation_findings
from reconciler.core.schema.observation import Time
from reconciler.core.schema.strict_model import Strict, Text, refusal
from reconciler.errors import InvalidInput, Problem
from reconciler.model.ids import WorkspaceName, is_name
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, shortened
from reconciler.text.timestamps import format_time

_MOST_TOKENS = 1000
"""Bound on tokens, since each call is compared with all of them."""
_DIGEST = re.compile("[0-9a-f]{64}")
_ROLES = {str(role): role for role in values.AccessRole}


def _scope(text: str) -> str:
    """Accept a workspace's name, or a star for all of them."""
    if text != values.EVERYWHERE and not is_name(text):
        raise refusal(f"{shortened(text, 40)!r} is not the name of a workspace", "try one, or '*' in quotes for all")
    return text


def _digest(text: str) -> str:
    """Accept a SHA-256. Any other text may be a secret, and is not repeated."""
    if text.startswith(values.PREFIX):
        raise refusal("is the token itself, which only its bearer should have", "make a new one with `overspill token`")
    if _DIGEST.fullmatch(text) is None:
        raise refusal("is not a SHA-256 of 64 digits from 0 to f", "try what `overspill token` prints")
    return text


def _name(text: str) -> str:
    """Accept a name of a person or client."""
    if not values.is_valid_name(text):
        raise refusal("is not a name of at most 100 printable characters without < and >", "try 'ci'")
    return text


def _email(text: str) -> str:
    """Accept a mail address."""
    if not values.is_valid_email(text):
        raise refusal(f"{shortened(text, 40)!r} is not a mail address", "try 'ada@example.com'")
    return text


RoleName = Literal["Viewer", "Editor", "Owner"]
RolesFile = Annotated[dict[Annotated[str, AfterValidator(_scope)], RoleName], Field(min_length=1)]
PersonName = Annotated[str, AfterValidator(_name)]
Email = Annotated[str, AfterValidator(_email)]


def _roles(file: dict[str, RoleName]) -> dict[values.RoleScope, values.AccessRole]:
    return {values.EVERYWHERE if name == "*" else WorkspaceName(name): _ROLES[role] for name, role in file.items()}


class TokenFile(Strict):
    """A token and its bearer's rights."""

    name: PersonName = Field(description="The owner of the token, as named in the log and in commits.")
    email: Email | None = None
    sha256: Annotated[str, AfterValidator(_digest)]
    expires: Time | None = None
    roles: RolesFile = Field(description="A role for each workspace; '*' is all of them.")

    def value_of(self) -> values.Token:
        """Make the core's value."""
        return values.Token(
            name=self.name,
            email=self.email or "",
            digest=self.sha256,
            expires=self.expires,
            roles=_roles(self.roles),
        )


class IssuerRuleFile(Strict):
    """Whom the issuer's tokens give which roles: by exactly one claim."""

    group: Text | None = None
    subject: Text | None = None
    email: Email | None = None
    workspaces: RolesFile = Field(description="A role for each workspace; '*' is all of them.")

    @model_validator(mode="after")
    def _of_one_claim(self) -> IssuerRuleFile:
        """Refuse a rule without a claim, and one with two."""
        if sum(claim is not None for claim in (self.group, self.subject, self.email)) != 1:
            raise refusal("must have exactly one of group, subject and email", "try a rule for each")
        return self

    def value_of(self) -> values.IssuerRule:
        """Make the core's value."""
        roles = _roles(self.workspaces)
        if self.group is not None:
            return values.IssuerRule(claim="group", value=self.group, roles=roles)
        if self.subject is not None:
            return values.IssuerRule(claim="subject", value=self.subject, roles=roles)
        return values.IssuerRule(claim="email", value=self.email or "", roles=roles)


class OidcFile(Strict):
    """Roles of the tokens of the OpenID Connect issuer."""

    roles: list[IssuerRuleFile] = Field([])


class AccessFile(Strict):
    """The roles of tokens and of people."""

    tokens: Annotated[list[TokenFile], Field(max_length=_MOST_TOKENS)] = Field([])
    oidc: OidcFile | None = None

    def value_of(self) -> values.Access:
        """Make the core's value."""
        return values.Access(
            tokens=tuple(token.value_of() for token in self.tokens),
            rules=tuple(rule.value_of() for rule in self.oidc.roles) if self.oidc else (),
        )


def read_access(data: bytes, path: str) -> Access:
    """Read the access file. Raises InvalidInput with every problem; none repeats a token."""
    documents = yaml.parse(data, path)
    if len(documents) != 1:
        message = "holds several documents" if documents else "is empty"
        hint = "try one with all tokens" if documents else "try {}, which lets nobody in"
        raise InvalidInput(problems=(Problem(path=path, message=message, hint=hint),))
    (document,) = documents
    if isinstance(document.value, list):
        hint = "try beginning the file with `tokens:`, above the list"
        raise InvalidInput(
            problems=(Problem(path=path, line=document.line(()), message="must be a mapping, not a list", hint=hint),)
        )
    try:
        file = AccessFile.model_validate(document.value)
    except ValidationError as error:
        findings: tuple[Finding, ...] = validation_findings(error, AccessFile)
    else:
        findings = tuple(_duplicates(file))
    if findings:
        problems = (finding.problem(path=path, line=document.line(finding.loc)) for finding in findings)
        raise InvalidInput(problems=tuple(sorted(problems)))
    return file.value_of()


def token_entry(token: Token) -> str:
    """Write the entry of a token, for the list under ``tokens:``."""
    fields: dict[str, Json] = {"name": token.name}
    if token.email:
        fields["email"] = token.email
    fields["sha256"] = token.digest
    if token.expires is not None:
        fields["expires"] = format_time(token.expires)
    fields["roles"] = {scope: str(role) for scope, role in token.roles.items()}
    return yaml.emit([fields])


def _duplicates(file: AccessFile) -> Iterator[Finding]:
    """Report duplicate tokens and duplicate names, which the log could not tell apart."""
    names: set[str] = set()
    digests: set[str] = set()
    for index, token in enumerate(file.tokens):
        if token.name in names:
            loc = ("tokens", index, "name")
            yield Finding(loc=loc, message="is another token's name as well", hint=f"try {token.name + '-2'!r}")
        if token.sha256 in digests:
            loc = ("tokens", index, "sha256")
            yield Finding(loc=loc, message="is another entry's token as well", hint="try a token for each")
        names.add(token.name)
        digests.add(token.sha256)
