// Command kserve asks what KServe's webhook refuses of an LLMInferenceService.
package main

import (
	"context"

	"github.com/kserve/kserve/pkg/apis/serving/v1alpha2"

	"overspill.dev/e2e/refusals"
)

func main() {
	refusals.Main(map[string]refusals.Rule{
		"serving.kserve.io/v1alpha2/LLMInferenceService": refusals.Of(func(service *v1alpha2.LLMInferenceService) error {
			_, refused := (&v1alpha2.LLMInferenceServiceValidator{}).ValidateCreate(context.Background(), service)
			return refused
		}),
	})
}
