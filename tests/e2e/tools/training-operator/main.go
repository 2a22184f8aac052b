// Command training-operator asks what the Training Operator's webhooks refuse. It has none for an MPIJob: its controller
// makes no pods for one that it refuses.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	"github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"

	"overspill.dev/e2e/refusals"
)

type validator interface {
	ValidateCreate(context.Context, runtime.Object) (admission.Warnings, error)
}

func created(by validator, job runtime.Object) error {
	_, refused := by.ValidateCreate(context.Background(), job)
	return refused
}

func main() {
	refusals.Main(map[string]refusals.Rule{
		"kubeflow.org/v1/PyTorchJob": refusals.Of(func(job *kubeflow.PyTorchJob) error {
			return created(&pytorch.Webhook{}, job)
		}),
		"kubeflow.org/v1/TFJob": refusals.Of(func(job *kubeflow.TFJob) error {
			return created(&tensorflow.Webhook{}, job)
		}),
		"kubeflow.org/v1/MPIJob": refusals.Of(func(job *kubeflow.MPIJob) error {
			return kubeflow.ValidateV1MpiJobSpec(&job.Spec)
		}),
	})
}
