// Command kruise asks what OpenKruise's webhooks refuse of a new object, once its defaults are set.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openkruise/kruise/apis/apps/defaults"
	appsv1alpha1 "github.com/openkruise/kruise/apis/apps/v1alpha1"
	appsv1beta1 "github.com/openkruise/kruise/apis/apps/v1beta1"
	advancedcronjob "github.com/openkruise/kruise/pkg/webhook/advancedcronjob/validating"
	broadcastjob "github.com/openkruise/kruise/pkg/webhook/broadcastjob/validating"
	cloneset "github.com/openkruise/kruise/pkg/webhook/cloneset/validating"
	daemonset "github.com/openkruise/kruise/pkg/webhook/daemonset/validating"
	statefulset "github.com/openkruise/kruise/pkg/webhook/statefulset/validating"
	uniteddeployment "github.com/openkruise/kruise/pkg/webhook/uniteddeployment/validating"
	workloadspread "github.com/openkruise/kruise/pkg/webhook/workloadspread/validating"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"overspill.dev/e2e/refusals"
)

func main() {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1alpha1.AddToScheme(scheme), appsv1beta1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	decoder := admission.NewDecoder(scheme)
	refusals.Main(map[string]refusals.Rule{
		"apps.kruise.io/v1alpha1/AdvancedCronJob": rule(
			&advancedcronjob.AdvancedCronJobCreateUpdateHandler{Decoder: decoder},
			func(job *appsv1alpha1.AdvancedCronJob) { defaults.SetDefaultsAdvancedCronJob(job, true) },
		),
		"apps.kruise.io/v1alpha1/BroadcastJob": rule(
			&broadcastjob.BroadcastJobCreateUpdateHandler{Decoder: decoder},
			func(job *appsv1alpha1.BroadcastJob) { defaults.SetDefaultsBroadcastJob(job, true) },
		),
		"apps.kruise.io/v1alpha1/CloneSet": rule(
			&cloneset.CloneSetCreateUpdateHandler{Client: alone{}, Decoder: decoder},
			func(set *appsv1alpha1.CloneSet) { defaults.SetDefaultsCloneSet(set, true) },
		),
		"apps.kruise.io/v1alpha1/DaemonSet": rule(
			&daemonset.DaemonSetCreateUpdateHandler{Decoder: decoder},
			defaults.SetDefaultsDaemonSet,
		),
		"apps.kruise.io/v1beta1/StatefulSet": rule(
			&statefulset.StatefulSetCreateUpdateHandler{Client: alone{}, Decoder: decoder},
			func(set *appsv1beta1.StatefulSet) { defaults.SetDefaultsStatefulSet(set, true) },
		),
		"apps.kruise.io/v1alpha1/UnitedDeployment": rule(
			&uniteddeployment.UnitedDeploymentCreateUpdateHandler{Decoder: decoder},
			func(deployment *appsv1alpha1.UnitedDeployment) {
				defaults.SetDefaultsUnitedDeployment(deployment, true)
			},
		),
		"apps.kruise.io/v1alpha1/WorkloadSpread": rule(
			&workloadspread.WorkloadSpreadCreateUpdateHandler{Client: alone{}, Decoder: decoder},
			func(*appsv1alpha1.WorkloadSpread) {},
		),
	})
}

// rule asks a webhook about a new object, after its defaults.
func rule[Object any](webhook admission.Handler, complete func(*Object)) refusals.Rule {
	return refusals.Of(func(object *Object) error {
		complete(object)
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		var head metav1.TypeMeta
		if err := json.Unmarshal(raw, &head); err != nil {
			return err
		}
		kind := head.GroupVersionKind()
		answer := webhook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create,
			Resource:  metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version},
			Object:    runtime.RawExtension{Raw: raw},
		}})
		if answer.Allowed {
			return nil
		}
		return errors.New(answer.Result.Message)
	})
}

// alone is a cluster in which there is nothing but the object that is asked about.
type alone struct{ client.Client }

func (alone) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("not found")
}

func (alone) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}
