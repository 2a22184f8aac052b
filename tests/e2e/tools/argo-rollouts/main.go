// Command argo-rollouts asks what the controller of Argo Rollouts refuses of a Rollout.
package main

import (
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/validation"

	"overspill.dev/e2e/refusals"
)

func main() {
	refusals.Main(map[string]refusals.Rule{
		"argoproj.io/v1alpha1/Rollout": refusals.Of(func(rollout *v1alpha1.Rollout) error {
			return validation.ValidateRollout(rollout).ToAggregate()
		}),
	})
}
