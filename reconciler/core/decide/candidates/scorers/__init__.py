"""Scorers: in which order the clusters that a workload may use are tried.

Called by `CandidateFinder.order` and by what gives replicas back, which goes the other way. A scorer is a module of its
own with a class of the shape of `Scorer`, a row in `SCORERS` and a name in `ScorerName`. It refuses no cluster (filters
do that), and leaves the plan as it is. Policies weigh scorers; without any, clusters keep the order of the policy.
"""

from __future__ import annotations

from reconciler.core.decide.candidates.scorers.ranking import SCORERS, Ranking, ranked
from reconciler.core.decide.candidates.scorers.scorer import Points, Scorer, Subject

__all__ = ["SCORERS", "Points", "Ranking", "Scorer", "Subject", "ranked"]
