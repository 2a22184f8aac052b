// Command volcano asks what Volcano's webhooks refuse of a Job, after their defaults, and of a PodGroup. Each queue is
// there and open.
package main

import (
	"errors"
	"fmt"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	scheduling "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	listers "volcano.sh/apis/pkg/client/listers/scheduling/v1beta1"
	"volcano.sh/volcano/cmd/webhook-manager/app/options"
	"volcano.sh/volcano/pkg/webhooks/admission/jobs/mutate"
	jobs "volcano.sh/volcano/pkg/webhooks/admission/jobs/validate"
	podgroups "volcano.sh/volcano/pkg/webhooks/admission/podgroups/validate"
	"volcano.sh/volcano/pkg/webhooks/router"

	"overspill.dev/e2e/refusals"
)

// openQueues has an open queue of any name.
type openQueues struct{ listers.QueueLister }

func (openQueues) Get(name string) (*scheduling.Queue, error) {
	return &scheduling.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     scheduling.QueueStatus{State: scheduling.QueueStateOpen},
	}, nil
}

func (openQueues) List(labels.Selector) ([]*scheduling.Queue, error) { return nil, nil }

func review(object []byte, version, resource string) admissionv1.AdmissionReview {
	group := batch.SchemeGroupVersion.Group
	if resource == "podgroups" {
		group = scheduling.SchemeGroupVersion.Group
	}
	return admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Resource:  metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Object:    runtime.RawExtension{Raw: object},
	}}
}

func refused(response *admissionv1.AdmissionResponse) error {
	if response.Allowed {
		return nil
	}
	return errors.New(response.Result.Message)
}

func job(object []byte) error {
	defaults := mutate.Jobs(review(object, "v1alpha1", "jobs"))
	if err := refused(defaults); err != nil {
		return err
	}
	if len(defaults.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(defaults.Patch)
		if err != nil {
			return fmt.Errorf("reading the defaults: %w", err)
		}
		if object, err = patch.Apply(object); err != nil {
			return fmt.Errorf("setting the defaults: %w", err)
		}
	}
	return refused(jobs.AdmitJobs(review(object, "v1alpha1", "jobs")))
}

func podGroup(object []byte) error {
	return refused(podgroups.Validate(review(object, "v1beta1", "podgroups")))
}

func main() {
	admissions := &options.Config{EnabledAdmission: "/jobs/validate,/podgroups/validate"}
	queues := func(service *router.AdmissionService) error {
		service.Config.QueueLister = openQueues{}
		return nil
	}
	if err := router.ForEachAdmission(admissions, queues); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	refusals.Main(map[string]refusals.Rule{
		"batch.volcano.sh/v1alpha1/Job":          job,
		"scheduling.volcano.sh/v1beta1/PodGroup": podGroup,
	})
}
