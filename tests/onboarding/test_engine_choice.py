"""Each cluster gets the engine that runs there, else the one that deploys from elsewhere or is chosen."""

from __future__ import annotations

from reconciler.core.onboarding.context_reading import EngineSighting
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster
from reconciler.core.onboarding.engine_choice import EngineChoice, choose_engines, control_clusters
from reconciler.model.ids import ClusterName
from reconciler.model.policy import EngineName

ARGOCD, FLUX = EngineName.ARGOCD, EngineName.FLUX
HOME = ClusterName("home")


def cluster(name: str, *engines: EngineName, namespace: str = "gitops", trouble: str = "") -> DiscoveredCluster:
    namespaces = (namespace,) if namespace else ()
    return DiscoveredCluster(
        name=ClusterName(name),
        context=name,
        trouble=trouble,
        engines={engine: EngineSighting(namespaces=namespaces) for engine in engines},
    )


def chosen(*clusters: DiscoveredCluster, preferred: EngineName | None = None) -> EngineChoice:
    places = control_clusters(clusters)
    return choose_engines(clusters, HOME, places[0] if places else None, preferred)


def names(choice: EngineChoice) -> dict[str, str]:
    return {name: engine.name.value for name, engine in choice.clusters.items()}


def test_flux_applies_where_it_runs_and_argo_cd_from_where_it_runs() -> None:
    choice = chosen(cluster("home"), cluster("a", FLUX), cluster("hub", ARGOCD), cluster("spoke"))
    assert names(choice) == {"home": "argocd", "a": "flux", "hub": "argocd", "spoke": "argocd"}
    assert choice.undecided == ()
    assert choice.default is not None
    assert choice.default.name is ARGOCD
    assert choice.control is not None
    assert (choice.control.cluster.name, choice.control.namespace) == ("hub", "gitops")
    assert choice.clusters[ClusterName("spoke")].because == (
        "Argo CD runs in hub, in namespace gitops; it has to know this cluster by the name spoke"
    )


def test_a_cluster_without_an_engine_is_undecided_but_for_the_primary() -> None:
    choice = chosen(cluster("home"), cluster("a"), cluster("b", FLUX), cluster("away", trouble="gone"))
    assert (names(choice), choice.undecided) == ({"b": "flux"}, ("a",))
    assert choice.default is not None
    assert choice.default.name is FLUX


def test_a_cluster_with_two_engines_is_undecided() -> None:
    assert chosen(cluster("home"), cluster("a", ARGOCD, FLUX)).undecided == ("a",)


def test_the_chosen_engine_is_for_clusters_with_none_or_several() -> None:
    choice = chosen(cluster("home"), cluster("a", ARGOCD, FLUX), cluster("b", FLUX), cluster("c"), preferred=ARGOCD)
    assert names(choice) == {"home": "argocd", "a": "argocd", "b": "flux", "c": "argocd"}
    assert choice.undecided == ()


def test_left_over_definitions_are_no_control_plane_where_another_runs() -> None:
    old, hub = cluster("old", ARGOCD, namespace=""), cluster("hub", ARGOCD)
    assert [place.cluster.name for place in control_clusters((old, hub))] == ["hub"]
    assert [place.cluster.name for place in control_clusters((old,))] == ["old"]


def test_an_argo_cd_that_is_not_taken_applies_nothing() -> None:
    clusters = (cluster("home"), cluster("a", ARGOCD, FLUX), cluster("b", ARGOCD))
    places = control_clusters(clusters)
    assert [place.cluster.name for place in places] == ["a", "b"]
    assert names(choose_engines(clusters, HOME, places[1], None)) == {"home": "argocd", "a": "flux", "b": "argocd"}


def test_where_nothing_is_known_the_fleet_names_no_engine() -> None:
    assert chosen(cluster("home"), cluster("away", trouble="gone")).default is None
