// Command kuberay asks what KubeRay refuses: its webhooks first, and then its controllers, which go no further with an
// object that they refuse.
package main

import (
	"context"
	"errors"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	webhooks "github.com/ray-project/kuberay/ray-operator/pkg/webhooks/v1"

	"overspill.dev/e2e/refusals"
)

func main() {
	refusals.Main(map[string]refusals.Rule{
		"ray.io/v1/RayCluster": refusals.Of(func(cluster *rayv1.RayCluster) error {
			_, refused := (&webhooks.RayClusterWebhook{}).ValidateCreate(context.Background(), cluster)
			return errors.Join(
				refused,
				utils.ValidateRayClusterMetadata(cluster.ObjectMeta),
				utils.ValidateRayClusterSpec(&cluster.Spec, cluster.Annotations),
			)
		}),
		"ray.io/v1/RayJob": refusals.Of(func(job *rayv1.RayJob) error {
			_, refused := (&webhooks.RayJobWebhook{}).ValidateCreate(context.Background(), job)
			return errors.Join(refused, utils.ValidateRayJobMetadata(job.ObjectMeta), utils.ValidateRayJobSpec(job))
		}),
		"ray.io/v1/RayService": refusals.Of(func(service *rayv1.RayService) error {
			_, refused := (&webhooks.RayServiceWebhook{}).ValidateCreate(context.Background(), service)
			return errors.Join(
				refused,
				utils.ValidateRayServiceMetadata(service.ObjectMeta),
				utils.ValidateRayServiceSpec(service),
			)
		}),
	})
}
