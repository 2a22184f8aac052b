"""Budgets, as Workspaces and BurstPolicies have them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from reconciler.core.schema.strict_model import Strict, refusal
from reconciler.model.budget import Budget

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BudgetFile(Strict):
    """Dollars after which nothing new is placed until the next day or month begins, in UTC."""

    per_day: Dollars | None = Field(None, description="Dollars a day, in UTC.")
    per_month: Dollars | None = Field(None, description="Dollars a calendar month, in UTC.")

    @model_validator(mode="after")
    def _refuse_no_bound(self) -> BudgetFile:
        """Refuse a budget that bounds nothing."""
        if self.per_day is None and self.per_month is None:
            raise refusal("has neither perDay nor perMonth", "try perDay: 100")
        return self

    def value_of(self) -> Budget:
        """Make the model's value."""
        return Budget(per_day=self.per_day, per_month=self.per_month)
