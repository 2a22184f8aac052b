// Command kueue-webhooks asks what the webhooks of LeaderWorkerSet and Kueue refuse of a new object: those of the
// object's own project after its defaults, and then Kueue's. Each refusal begins with the one whose it is. Of a
// DisaggregatedSet, LeaderWorkerSet is also asked about what the controller makes of each role.
package main

import (
	"encoding/json"
	"errors"
	"fmt"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	jobsets "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/deployment"
	"sigs.k8s.io/kueue/pkg/controller/jobs/job"
	"sigs.k8s.io/kueue/pkg/controller/jobs/jobset"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/jaxjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/paddlejob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/pytorchjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/tfjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/xgboostjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/leaderworkerset"
	"sigs.k8s.io/kueue/pkg/controller/jobs/mpijob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/pod"
	"sigs.k8s.io/kueue/pkg/controller/jobs/raycluster"
	"sigs.k8s.io/kueue/pkg/controller/jobs/rayjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/rayservice"
	"sigs.k8s.io/kueue/pkg/controller/jobs/statefulset"
	disaggregatedsets "sigs.k8s.io/lws/api/disaggregatedset/v1"
	leaderworkersets "sigs.k8s.io/lws/api/leaderworkerset/v1"
	lwswebhooks "sigs.k8s.io/lws/pkg/webhooks"
	"sigs.k8s.io/lws/pkg/webhooks/disaggregatedset"

	"overspill.dev/e2e/refusals"
	"overspill.dev/e2e/webhooks"
)

func main() {
	scheme := runtime.NewScheme()
	own, kueue := webhooks.NewServer(scheme), webhooks.NewServer(scheme)
	if err := errors.Join(
		appsv1.AddToScheme(scheme),
		batchv1.AddToScheme(scheme),
		corev1.AddToScheme(scheme),
		disaggregatedsets.AddToScheme(scheme),
		jobsets.AddToScheme(scheme),
		leaderworkersets.AddToScheme(scheme),
		mpi.AddToScheme(scheme),
		ray.AddToScheme(scheme),
		training.AddToScheme(scheme),
		lwswebhooks.SetupLeaderWorkerSetWebhook(own.Manager()),
		disaggregatedset.SetupDisaggregatedSetWebhook(own.Manager()),
	); err != nil {
		panic(err)
	}
	for _, setup := range []func(ctrl.Manager, ...jobframework.Option) error{
		deployment.SetupWebhook,
		job.SetupWebhook,
		jobset.SetupJobSetWebhook,
		jaxjob.SetupJAXJobWebhook,
		paddlejob.SetupPaddleJobWebhook,
		pytorchjob.SetupPyTorchJobWebhook,
		tfjob.SetupTFJobWebhook,
		xgboostjob.SetupXGBoostJobWebhook,
		leaderworkerset.SetupWebhook,
		mpijob.SetupMPIJobWebhook,
		pod.SetupWebhook,
		raycluster.SetupRayClusterWebhook,
		rayjob.SetupRayJobWebhook,
		rayservice.SetupRayServiceWebhook,
		statefulset.SetupWebhook,
	} {
		if err := setup(kueue.Manager()); err != nil {
			panic(err)
		}
	}
	rules := map[string]refusals.Rule{}
	for _, kind := range kueue.Kinds() {
		rules[kind.GroupVersion().String()+"/"+kind.Kind] = func(object []byte) error {
			completed, refused := own.Ask(object, kind, true)
			_, queued := kueue.Ask(completed, kind, false)
			return errors.Join(named("its project", refused), named("Kueue", queued))
		}
	}
	kind := disaggregatedsets.GroupVersion.WithKind("DisaggregatedSet")
	rules[kind.GroupVersion().String()+"/"+kind.Kind] = func(object []byte) error {
		_, refused := own.Ask(object, kind, true)
		return named("its project", errors.Join(refused, roles(own, object)))
	}
	refusals.Main(rules)
}

// roles returns why LeaderWorkerSet refuses what the controller makes of the roles of a DisaggregatedSet.
func roles(own *webhooks.Server, object []byte) error {
	var set disaggregatedsets.DisaggregatedSet
	if err := json.Unmarshal(object, &set); err != nil {
		return err
	}
	kind := leaderworkersets.GroupVersion.WithKind("LeaderWorkerSet")
	var refused error
	for _, role := range set.Spec.Roles {
		made := leaderworkersets.LeaderWorkerSet{ObjectMeta: role.ObjectMeta, Spec: role.Spec}
		made.SetGroupVersionKind(kind)
		made.Name, made.Namespace = fmt.Sprintf("%s-0-00000000-%s", set.Name, role.Name), set.Namespace
		text, err := json.Marshal(made)
		if err != nil {
			return err
		}
		_, below := own.Ask(text, kind, true)
		refused = errors.Join(refused, below)
	}
	return refused
}

// named puts the one who refuses before the refusal.
func named(who string, refusal error) error {
	if refusal == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", who, refusal)
}
