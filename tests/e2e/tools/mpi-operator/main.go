// Command mpi-operator asks what the MPI Operator's controller refuses, after its defaults.
package main

import (
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"

	"overspill.dev/e2e/refusals"
)

func main() {
	refusals.Main(map[string]refusals.Rule{
		"kubeflow.org/v2beta1/MPIJob": refusals.Of(func(job *v2beta1.MPIJob) error {
			v2beta1.SetDefaults_MPIJob(job)
			if refused := validation.ValidateMPIJob(job).ToAggregate(); refused != nil {
				return refused
			}
			return nil
		}),
	})
}
