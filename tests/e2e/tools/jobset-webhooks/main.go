// Command jobset-webhooks asks what JobSet's webhooks refuse of a new object, after its defaults.
package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jobsets "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetwebhooks "sigs.k8s.io/jobset/pkg/webhooks"

	"overspill.dev/e2e/refusals"
	"overspill.dev/e2e/webhooks"
)

func main() {
	scheme := runtime.NewScheme()
	own := webhooks.NewServer(scheme)
	if err := errors.Join(
		corev1.AddToScheme(scheme), jobsets.AddToScheme(scheme), jobsetwebhooks.Setup(own.Manager()),
	); err != nil {
		panic(err)
	}
	rules := map[string]refusals.Rule{}
	for _, kind := range own.Kinds() {
		rules[kind.GroupVersion().String()+"/"+kind.Kind] = func(object []byte) error {
			if _, refused := own.Ask(object, kind, true); refused != nil {
				return fmt.Errorf("its project: %w", refused)
			}
			return nil
		}
	}
	refusals.Main(rules)
}
