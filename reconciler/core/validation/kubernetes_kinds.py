"""The kinds of Kubernetes 1.37, as text that `kubernetes` reads; written by ``make kubernetes-kinds``.

Derived from the OpenAPI of Kubernetes (https://github.com/kubernetes/kubernetes, Apache-2.0) by way of
kubernetes-validate 1.37.0 (Apache-2.0). Each block is one definition: its name, of a kind also the apiVersion and
the kind, after ``<`` a definition whose fields it has too, then one line for each field of its own. ``!`` marks a
required field; ``[]`` a list, ``{}`` a mapping of texts to values, ``*`` anything, and words parted by bars are the
only ones that a field takes. A type that begins with a dot is of the definition's own group and version.
"""

VERSION = "1.37"
"""The version of Kubernetes."""

DEFINITIONS = """\
admissionregistration.v1.MutatingAdmissionPolicy admissionregistration.k8s.io/v1 MutatingAdmissionPolicy
 metadata meta.v1.ObjectMeta
 spec .MutatingAdmissionPolicySpec

admissionregistration.v1.MutatingAdmissionPolicyBinding admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding
 metadata meta.v1.ObjectMeta
 spec .MutatingAdmissionPolicyBindingSpec

admissionregistration.v1.MutatingWebhookConfiguration admissionregistration.k8s.io/v1 MutatingWebhookConfiguration
 metadata meta.v1.ObjectMeta
 webhooks [].MutatingWebhook

admissionregistration.v1.ValidatingAdmissionPolicy admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy
 metadata meta.v1.ObjectMeta
 spec .ValidatingAdmissionPolicySpec
 status *

admissionregistration.v1.ValidatingAdmissionPolicyBinding admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding
 metadata meta.v1.ObjectMeta
 spec! .ValidatingAdmissionPolicyBindingSpec

admissionregistration.v1.ValidatingWebhookConfiguration admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration
 metadata meta.v1.ObjectMeta
 webhooks [].ValidatingWebhook

admissionregistration.v1alpha1.MutatingAdmissionPolicy admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicy <admissionregistration.v1.MutatingAdmissionPolicy

admissionregistration.v1alpha1.MutatingAdmissionPolicyBinding admissionregistration.k8s.io/v1alpha1 MutatingAdmissionPolicyBinding <admissionregistration.v1.MutatingAdmissionPolicyBinding

admissionregistration.v1beta1.MutatingAdmissionPolicy admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy <admissionregistration.v1.MutatingAdmissionPolicy

admissionregistration.v1beta1.MutatingAdmissionPolicyBinding admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding <admissionregistration.v1.MutatingAdmissionPolicyBinding

apiextensions.v1.CustomResourceDefinition apiextensions.k8s.io/v1 CustomResourceDefinition
 metadata meta.v1.ObjectMeta
 spec! .CustomResourceDefinitionSpec
 status *

apiregistration.v1.APIService apiregistration.k8s.io/v1 APIService
 metadata meta.v1.ObjectMeta
 spec! .APIServiceSpec
 status *

apiserverinternal.v1alpha1.StorageVersion internal.apiserver.k8s.io/v1alpha1 StorageVersion
 metadata! meta.v1.ObjectMeta
 spec .StorageVersionSpec
 status *

apps.v1.ControllerRevision apps/v1 ControllerRevision
 data! *
 metadata meta.v1.ObjectMeta
 revision int64

apps.v1.DaemonSet apps/v1 DaemonSet
 metadata meta.v1.ObjectMeta
 spec! .DaemonSetSpec
 status *

apps.v1.Deployment apps/v1 Deployment
 metadata meta.v1.ObjectMeta
 spec! .DeploymentSpec
 status *

apps.v1.ReplicaSet apps/v1 ReplicaSet
 metadata meta.v1.ObjectMeta
 spec! .ReplicaSetSpec
 status *

apps.v1.StatefulSet apps/v1 StatefulSet
 metadata meta.v1.ObjectMeta
 spec! .StatefulSetSpec
 status *

authentication.v1.SelfSubjectReview authentication.k8s.io/v1 SelfSubjectReview
 metadata meta.v1.ObjectMeta
 status *

authentication.v1.TokenRequest authentication.k8s.io/v1 TokenRequest <authentication.v1.SelfSubjectReview
 spec .TokenRequestSpec

authentication.v1.TokenReview authentication.k8s.io/v1 TokenReview <authentication.v1.SelfSubjectReview
 spec! .TokenReviewSpec

authorization.v1.LocalSubjectAccessReview authorization.k8s.io/v1 LocalSubjectAccessReview <authentication.v1.SelfSubjectReview
 spec! .SubjectAccessReviewSpec

authorization.v1.SelfSubjectAccessReview authorization.k8s.io/v1 SelfSubjectAccessReview <authentication.v1.SelfSubjectReview
 spec! .SelfSubjectAccessReviewSpec

authorization.v1.SelfSubjectRulesReview authorization.k8s.io/v1 SelfSubjectRulesReview <authentication.v1.SelfSubjectReview
 spec! .SelfSubjectRulesReviewSpec

authorization.v1.SubjectAccessReview authorization.k8s.io/v1 SubjectAccessReview <authorization.v1.LocalSubjectAccessReview

autoscaling.v1.HorizontalPodAutoscaler autoscaling/v1 HorizontalPodAutoscaler <authentication.v1.SelfSubjectReview
 spec! .HorizontalPodAutoscalerSpec

autoscaling.v1.Scale autoscaling/v1 Scale <authentication.v1.SelfSubjectReview
 spec .ScaleSpec

autoscaling.v2.HorizontalPodAutoscaler autoscaling/v2 HorizontalPodAutoscaler <autoscaling.v1.HorizontalPodAutoscaler

batch.v1.CronJob batch/v1 CronJob <authentication.v1.SelfSubjectReview
 spec! .CronJobSpec

batch.v1.Job batch/v1 Job <authentication.v1.SelfSubjectReview
 spec! .JobSpec

certificates.v1.CertificateSigningRequest certificates.k8s.io/v1 CertificateSigningRequest <authentication.v1.SelfSubjectReview
 spec! .CertificateSigningRequestSpec

certificates.v1.ClusterTrustBundle certificates.k8s.io/v1 ClusterTrustBundle
 metadata meta.v1.ObjectMeta
 spec! .ClusterTrustBundleSpec

certificates.v1.PodCertificateRequest certificates.k8s.io/v1 PodCertificateRequest <authentication.v1.SelfSubjectReview
 spec! .PodCertificateRequestSpec

certificates.v1beta1.ClusterTrustBundle certificates.k8s.io/v1beta1 ClusterTrustBundle <certificates.v1.ClusterTrustBundle

certificates.v1beta1.PodCertificateRequest certificates.k8s.io/v1beta1 PodCertificateRequest <certificates.v1.PodCertificateRequest

coordination.v1.Lease coordination.k8s.io/v1 Lease
 metadata meta.v1.ObjectMeta
 spec .LeaseSpec

coordination.v1alpha2.LeaseCandidate coordination.k8s.io/v1alpha2 LeaseCandidate
 metadata meta.v1.ObjectMeta
 spec! .LeaseCandidateSpec

coordination.v1beta1.LeaseCandidate coordination.k8s.io/v1beta1 LeaseCandidate <coordination.v1alpha2.LeaseCandidate

core.v1.Binding v1 Binding
 metadata meta.v1.ObjectMeta
 target! .ObjectReference

core.v1.ComponentStatus v1 ComponentStatus
 conditions [].ComponentCondition
 metadata meta.v1.ObjectMeta

core.v1.ConfigMap v1 ConfigMap
 binaryData {}string
 data {}string
 immutable boolean
 metadata meta.v1.ObjectMeta

core.v1.Endpoints v1 Endpoints
 metadata meta.v1.ObjectMeta
 subsets [].EndpointSubset

core.v1.Event v1 Event
 action string
 count int32
 eventTime string
 firstTimestamp string
 involvedObject! .ObjectReference
 lastTimestamp string
 message string
 metadata! meta.v1.ObjectMeta
 reason string
 related .ObjectReference
 reportingComponent string
 reportingInstance string
 series .EventSeries
 source .EventSource
 type string

core.v1.LimitRange v1 LimitRange
 metadata meta.v1.ObjectMeta
 spec! .LimitRangeSpec

core.v1.Namespace v1 Namespace <authentication.v1.SelfSubjectReview
 spec .NamespaceSpec

core.v1.Node v1 Node <authentication.v1.SelfSubjectReview
 spec .NodeSpec

core.v1.PersistentVolume v1 PersistentVolume <authentication.v1.SelfSubjectReview
 spec .PersistentVolumeSpec

core.v1.PersistentVolumeClaim v1 PersistentVolumeClaim <authentication.v1.SelfSubjectReview
 spec .PersistentVolumeClaimSpec

core.v1.Pod v1 Pod <authentication.v1.SelfSubjectReview
 spec! .PodSpec

core.v1.PodTemplate v1 PodTemplate
 metadata meta.v1.ObjectMeta
 template .PodTemplateSpec

core.v1.ReplicationController v1 ReplicationController <authentication.v1.SelfSubjectReview
 spec .ReplicationControllerSpec

core.v1.ResourceQuota v1 ResourceQuota <authentication.v1.SelfSubjectReview
 spec .ResourceQuotaSpec

core.v1.Secret v1 Secret
 data {}string
 immutable boolean
 metadata meta.v1.ObjectMeta
 stringData {}string
 type string

core.v1.Service v1 Service <authentication.v1.SelfSubjectReview
 spec .ServiceSpec

core.v1.ServiceAccount v1 ServiceAccount
 automountServiceAccountToken boolean
 imagePullSecrets [].LocalObjectReference
 metadata meta.v1.ObjectMeta
 secrets [].ObjectReference

discovery.v1.EndpointSlice discovery.k8s.io/v1 EndpointSlice
 addressType! string
 endpoints [].Endpoint
 metadata meta.v1.ObjectMeta
 ports [].EndpointPort

events.v1.Event events.k8s.io/v1 Event
 action string
 deprecatedCount int32
 deprecatedFirstTimestamp string
 deprecatedLastTimestamp string
 deprecatedSource core.v1.EventSource
 eventTime! string
 metadata meta.v1.ObjectMeta
 note string
 reason string
 regarding core.v1.ObjectReference
 related core.v1.ObjectReference
 reportingController string
 reportingInstance string
 series .EventSeries
 type string

flowcontrol.v1.FlowSchema flowcontrol.apiserver.k8s.io/v1 FlowSchema <authentication.v1.SelfSubjectReview
 spec! .FlowSchemaSpec

flowcontrol.v1.PriorityLevelConfiguration flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration <authentication.v1.SelfSubjectReview
 spec! .PriorityLevelConfigurationSpec

lifecycle.v1alpha1.Eviction lifecycle.k8s.io/v1alpha1 Eviction <authentication.v1.SelfSubjectReview
 spec! .EvictionSpec

lifecycle.v1alpha1.EvictionRequest lifecycle.k8s.io/v1alpha1 EvictionRequest <authentication.v1.SelfSubjectReview
 spec! .EvictionRequestSpec

networking.v1.IPAddress networking.k8s.io/v1 IPAddress
 metadata meta.v1.ObjectMeta
 spec! .IPAddressSpec

networking.v1.Ingress networking.k8s.io/v1 Ingress <authentication.v1.SelfSubjectReview
 spec .IngressSpec

networking.v1.IngressClass networking.k8s.io/v1 IngressClass
 metadata meta.v1.ObjectMeta
 spec .IngressClassSpec

networking.v1.NetworkPolicy networking.k8s.io/v1 NetworkPolicy
 metadata meta.v1.ObjectMeta
 spec .NetworkPolicySpec

networking.v1.ServiceCIDR networking.k8s.io/v1 ServiceCIDR <authentication.v1.SelfSubjectReview
 spec .ServiceCIDRSpec

node.v1.RuntimeClass node.k8s.io/v1 RuntimeClass
 handler! string
 metadata meta.v1.ObjectMeta
 overhead .Overhead
 scheduling .Scheduling

policy.v1.Eviction policy/v1 Eviction
 deleteOptions meta.v1.DeleteOptions
 metadata meta.v1.ObjectMeta

policy.v1.PodDisruptionBudget policy/v1 PodDisruptionBudget <authentication.v1.SelfSubjectReview
 spec .PodDisruptionBudgetSpec

rbac.v1.ClusterRole rbac.authorization.k8s.io/v1 ClusterRole
 aggregationRule .AggregationRule
 metadata meta.v1.ObjectMeta
 rules [].PolicyRule

rbac.v1.ClusterRoleBinding rbac.authorization.k8s.io/v1 ClusterRoleBinding
 metadata meta.v1.ObjectMeta
 roleRef! .RoleRef
 subjects [].Subject

rbac.v1.Role rbac.authorization.k8s.io/v1 Role
 metadata meta.v1.ObjectMeta
 rules [].PolicyRule

rbac.v1.RoleBinding rbac.authorization.k8s.io/v1 RoleBinding <rbac.v1.ClusterRoleBinding

resource.v1.DeviceClass resource.k8s.io/v1 DeviceClass
 metadata meta.v1.ObjectMeta
 spec .DeviceClassSpec

resource.v1.DeviceTaintRule resource.k8s.io/v1 DeviceTaintRule <authentication.v1.SelfSubjectReview
 spec! .DeviceTaintRuleSpec

resource.v1.ResourceClaim resource.k8s.io/v1 ResourceClaim <authentication.v1.SelfSubjectReview
 spec .ResourceClaimSpec

resource.v1.ResourceClaimTemplate resource.k8s.io/v1 ResourceClaimTemplate
 metadata meta.v1.ObjectMeta
 spec .ResourceClaimTemplateSpec

resource.v1.ResourceSlice resource.k8s.io/v1 ResourceSlice
 metadata meta.v1.ObjectMeta
 spec! .ResourceSliceSpec

resource.v1alpha3.DeviceTaintRule resource.k8s.io/v1alpha3 DeviceTaintRule <resource.v1.DeviceTaintRule

resource.v1alpha3.ResourcePoolStatusRequest resource.k8s.io/v1alpha3 ResourcePoolStatusRequest
 metadata! meta.v1.ObjectMeta
 spec! .ResourcePoolStatusRequestSpec
 status *

resource.v1beta1.DeviceClass resource.k8s.io/v1beta1 DeviceClass <resource.v1.DeviceClass

resource.v1beta1.ResourceClaim resource.k8s.io/v1beta1 ResourceClaim <resource.v1.ResourceClaim

resource.v1beta1.ResourceClaimTemplate resource.k8s.io/v1beta1 ResourceClaimTemplate <resource.v1.ResourceClaimTemplate

resource.v1beta1.ResourceSlice resource.k8s.io/v1beta1 ResourceSlice <resource.v1.ResourceSlice

resource.v1beta2.DeviceClass resource.k8s.io/v1beta2 DeviceClass <resource.v1.DeviceClass

resource.v1beta2.DeviceTaintRule resource.k8s.io/v1beta2 DeviceTaintRule <resource.v1.DeviceTaintRule

resource.v1beta2.ResourceClaim resource.k8s.io/v1beta2 ResourceClaim <resource.v1.ResourceClaim

resource.v1beta2.ResourceClaimTemplate resource.k8s.io/v1beta2 ResourceClaimTemplate <resource.v1.ResourceClaimTemplate

resource.v1beta2.ResourceSlice resource.k8s.io/v1beta2 ResourceSlice <resource.v1.ResourceSlice

scheduling.v1.PriorityClass scheduling.k8s.io/v1 PriorityClass
 description string
 globalDefault boolean
 metadata meta.v1.ObjectMeta
 preemptionPolicy Never|PreemptLowerPriority
 value int32

scheduling.v1alpha3.CompositePodGroup scheduling.k8s.io/v1alpha3 CompositePodGroup <authentication.v1.SelfSubjectReview
 spec! .CompositePodGroupSpec

scheduling.v1alpha3.PodGroup scheduling.k8s.io/v1alpha3 PodGroup <authentication.v1.SelfSubjectReview
 spec! .PodGroupSpec

scheduling.v1alpha3.Workload scheduling.k8s.io/v1alpha3 Workload
 metadata meta.v1.ObjectMeta
 spec! .WorkloadSpec

scheduling.v1beta1.PodGroup scheduling.k8s.io/v1beta1 PodGroup <scheduling.v1alpha3.PodGroup

scheduling.v1beta1.Workload scheduling.k8s.io/v1beta1 Workload <scheduling.v1alpha3.Workload

storage.v1.CSIDriver storage.k8s.io/v1 CSIDriver
 metadata meta.v1.ObjectMeta
 spec! .CSIDriverSpec

storage.v1.CSINode storage.k8s.io/v1 CSINode <authentication.v1.SelfSubjectReview
 spec! .CSINodeSpec

storage.v1.CSIStorageCapacity storage.k8s.io/v1 CSIStorageCapacity
 capacity quantity
 maximumVolumeSize quantity
 metadata meta.v1.ObjectMeta
 nodeTopology meta.v1.LabelSelector
 storageClassName! string

storage.v1.StorageClass storage.k8s.io/v1 StorageClass
 allowVolumeExpansion boolean
 allowedTopologies []core.v1.TopologySelectorTerm
 metadata meta.v1.ObjectMeta
 mountOptions []string
 parameters {}string
 provisioner! string
 reclaimPolicy string
 volumeBindingMode string

storage.v1.VolumeAttachment storage.k8s.io/v1 VolumeAttachment <authentication.v1.SelfSubjectReview
 spec! .VolumeAttachmentSpec

storage.v1.VolumeAttributesClass storage.k8s.io/v1 VolumeAttributesClass
 driverName! string
 metadata meta.v1.ObjectMeta
 parameters {}string

storagemigration.v1.StorageVersionMigration storagemigration.k8s.io/v1 StorageVersionMigration <authentication.v1.SelfSubjectReview
 spec! .StorageVersionMigrationSpec

storagemigration.v1beta1.StorageVersionMigration storagemigration.k8s.io/v1beta1 StorageVersionMigration <storagemigration.v1.StorageVersionMigration

admissionregistration.v1.ApplyConfiguration
 expression string

admissionregistration.v1.AuditAnnotation
 key! string
 valueExpression! string

admissionregistration.v1.JSONPatch <admissionregistration.v1.ApplyConfiguration

admissionregistration.v1.MatchCondition
 expression! string
 name! string

admissionregistration.v1.MatchResources
 excludeResourceRules [].NamedRuleWithOperations
 matchPolicy string
 namespaceSelector meta.v1.LabelSelector
 objectSelector meta.v1.LabelSelector
 resourceRules [].NamedRuleWithOperations

admissionregistration.v1.MutatingAdmissionPolicyBindingSpec
 matchResources .MatchResources
 paramRef .ParamRef
 policyName string

admissionregistration.v1.MutatingAdmissionPolicySpec
 failurePolicy string
 matchConditions [].MatchCondition
 matchConstraints .MatchResources
 mutations [].Mutation
 paramKind .ParamKind
 reinvocationPolicy string
 variables [].Variable

admissionregistration.v1.MutatingWebhook
 admissionReviewVersions! []string
 clientConfig! .WebhookClientConfig
 failurePolicy string
 matchConditions [].MatchCondition
 matchPolicy string
 name! string
 namespaceSelector meta.v1.LabelSelector
 objectSelector meta.v1.LabelSelector
 reinvocationPolicy string
 rules [].RuleWithOperations
 sideEffects! string
 timeoutSeconds int32

admissionregistration.v1.Mutation
 applyConfiguration .ApplyConfiguration
 jsonPatch .JSONPatch
 patchType! string

admissionregistration.v1.NamedRuleWithOperations
 apiGroups []string
 apiVersions []string
 operations []string
 resourceNames []string
 resources []string
 scope string

admissionregistration.v1.ParamKind
 apiVersion string
 kind string

admissionregistration.v1.ParamRef
 name string
 namespace string
 parameterNotFoundAction string
 selector meta.v1.LabelSelector

admissionregistration.v1.RuleWithOperations
 apiGroups []string
 apiVersions []string
 operations []string
 resources []string
 scope string

admissionregistration.v1.ServiceReference
 name! string
 namespace! string
 path string
 port int32

admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec
 matchResources .MatchResources
 paramRef .ParamRef
 policyName! string
 validationActions! []string

admissionregistration.v1.ValidatingAdmissionPolicySpec
 auditAnnotations [].AuditAnnotation
 failurePolicy string
 matchConditions [].MatchCondition
 matchConstraints .MatchResources
 paramKind .ParamKind
 validations [].Validation
 variables [].Variable

admissionregistration.v1.ValidatingWebhook
 admissionReviewVersions! []string
 clientConfig! .WebhookClientConfig
 failurePolicy string
 matchConditions [].MatchCondition
 matchPolicy string
 name! string
 namespaceSelector meta.v1.LabelSelector
 objectSelector meta.v1.LabelSelector
 rules [].RuleWithOperations
 sideEffects! string
 timeoutSeconds int32

admissionregistration.v1.Validation
 expression! string
 message string
 messageExpression string
 reason string

admissionregistration.v1.Variable <admissionregistration.v1.MatchCondition

admissionregistration.v1.WebhookClientConfig
 caBundle string
 service .ServiceReference
 url string

admissionregistration.v1alpha1.ApplyConfiguration <admissionregistration.v1.ApplyConfiguration

admissionregistration.v1alpha1.JSONPatch <admissionregistration.v1.ApplyConfiguration

admissionregistration.v1alpha1.MatchCondition <admissionregistration.v1.MatchCondition

admissionregistration.v1alpha1.MatchResources <admissionregistration.v1.MatchResources

admissionregistration.v1alpha1.MutatingAdmissionPolicyBindingSpec <admissionregistration.v1.MutatingAdmissionPolicyBindingSpec

admissionregistration.v1alpha1.MutatingAdmissionPolicySpec <admissionregistration.v1.MutatingAdmissionPolicySpec

admissionregistration.v1alpha1.Mutation <admissionregistration.v1.Mutation

admissionregistration.v1alpha1.NamedRuleWithOperations <admissionregistration.v1.NamedRuleWithOperations

admissionregistration.v1alpha1.ParamKind <admissionregistration.v1.ParamKind

admissionregistration.v1alpha1.ParamRef <admissionregistration.v1.ParamRef

admissionregistration.v1alpha1.Variable <admissionregistration.v1.MatchCondition

admissionregistration.v1beta1.ApplyConfiguration <admissionregistration.v1.ApplyConfiguration

admissionregistration.v1beta1.JSONPatch <admissionregistration.v1.ApplyConfiguration

admissionregistration.v1beta1.MatchCondition <admissionregistration.v1.MatchCondition

admissionregistration.v1beta1.MatchResources <admissionregistration.v1.MatchResources

admissionregistration.v1beta1.MutatingAdmissionPolicyBindingSpec <admissionregistration.v1.MutatingAdmissionPolicyBindingSpec

admissionregistration.v1beta1.MutatingAdmissionPolicySpec <admissionregistration.v1.MutatingAdmissionPolicySpec

admissionregistration.v1beta1.Mutation <admissionregistration.v1.Mutation

admissionregistration.v1beta1.NamedRuleWithOperations <admissionregistration.v1.NamedRuleWithOperations

admissionregistration.v1beta1.ParamKind <admissionregistration.v1.ParamKind

admissionregistration.v1beta1.ParamRef <admissionregistration.v1.ParamRef

admissionregistration.v1beta1.Variable <admissionregistration.v1.MatchCondition

apiextensions.v1.CustomResourceColumnDefinition
 description string
 format string
 jsonPath! string
 name! string
 priority int32
 type! string

apiextensions.v1.CustomResourceConversion
 strategy! string
 webhook .WebhookConversion

apiextensions.v1.CustomResourceDefinitionNames
 categories []string
 kind! string
 listKind string
 plural! string
 shortNames []string
 singular string

apiextensions.v1.CustomResourceDefinitionSpec
 conversion .CustomResourceConversion
 group! string
 names! .CustomResourceDefinitionNames
 preserveUnknownFields boolean
 scope! string
 versions! [].CustomResourceDefinitionVersion

apiextensions.v1.CustomResourceDefinitionVersion
 additionalPrinterColumns [].CustomResourceColumnDefinition
 deprecated boolean
 deprecationWarning string
 name! string
 schema .CustomResourceValidation
 selectableFields [].SelectableField
 served! boolean
 storage! boolean
 subresources .CustomResourceSubresources

apiextensions.v1.CustomResourceSubresourceScale
 labelSelectorPath string
 specReplicasPath! string
 statusReplicasPath! string

apiextensions.v1.CustomResourceSubresourceStatus

apiextensions.v1.CustomResourceSubresources
 scale .CustomResourceSubresourceScale
 status .CustomResourceSubresourceStatus

apiextensions.v1.CustomResourceValidation
 openAPIV3Schema .JSONSchemaProps

apiextensions.v1.ExternalDocumentation
 description string
 url string

apiextensions.v1.JSONSchemaProps
 $ref string
 $schema string
 additionalItems *
 additionalProperties *
 allOf [].JSONSchemaProps
 anyOf [].JSONSchemaProps
 default *
 definitions {}.JSONSchemaProps
 dependencies {}*
 description string
 enum []*
 example *
 exclusiveMaximum boolean
 exclusiveMinimum boolean
 externalDocs .ExternalDocumentation
 format string
 id string
 items *
 maxItems int64
 maxLength int64
 maxProperties int64
 maximum number
 minItems int64
 minLength int64
 minProperties int64
 minimum number
 multipleOf number
 not .JSONSchemaProps
 nullable boolean
 oneOf [].JSONSchemaProps
 pattern string
 patternProperties {}.JSONSchemaProps
 properties {}.JSONSchemaProps
 required []string
 title string
 type string
 uniqueItems boolean
 x-kubernetes-embedded-resource boolean
 x-kubernetes-int-or-string boolean
 x-kubernetes-list-map-keys []string
 x-kubernetes-list-type string
 x-kubernetes-map-type string
 x-kubernetes-preserve-unknown-fields boolean
 x-kubernetes-validations [].ValidationRule

apiextensions.v1.SelectableField
 jsonPath! string

apiextensions.v1.ServiceReference <admissionregistration.v1.ServiceReference

apiextensions.v1.ValidationRule
 fieldPath string
 message string
 messageExpression string
 optionalOldSelf boolean
 reason string
 rule! string

apiextensions.v1.WebhookClientConfig <admissionregistration.v1.WebhookClientConfig

apiextensions.v1.WebhookConversion
 clientConfig .WebhookClientConfig
 conversionReviewVersions! []string

apiregistration.v1.APIServiceSpec
 caBundle string
 group string
 groupPriorityMinimum! int32
 insecureSkipTLSVerify boolean
 service .ServiceReference
 version string
 versionPriority! int32

apiregistration.v1.ServiceReference
 name string
 namespace string
 port int32

apiserverinternal.v1alpha1.StorageVersionSpec

apps.v1.DaemonSetSpec
 minReadySeconds int32
 revisionHistoryLimit int32
 selector! meta.v1.LabelSelector
 template! core.v1.PodTemplateSpec
 updateStrategy .DaemonSetUpdateStrategy

apps.v1.DaemonSetUpdateStrategy
 rollingUpdate .RollingUpdateDaemonSet
 type OnDelete|RollingUpdate

apps.v1.DeploymentSpec
 minReadySeconds int32
 paused boolean
 progressDeadlineSeconds int32
 replicas int32
 revisionHistoryLimit int32
 selector! meta.v1.LabelSelector
 strategy .DeploymentStrategy
 template! core.v1.PodTemplateSpec

apps.v1.DeploymentStrategy
 rollingUpdate .RollingUpdateDeployment
 type Recreate|RollingUpdate

apps.v1.ReplicaSetSpec
 minReadySeconds int32
 replicas int32
 selector! meta.v1.LabelSelector
 template core.v1.PodTemplateSpec

apps.v1.RollingUpdateDaemonSet
 maxSurge int-or-string
 maxUnavailable int-or-string

apps.v1.RollingUpdateDeployment <apps.v1.RollingUpdateDaemonSet

apps.v1.RollingUpdateStatefulSetStrategy
 maxUnavailable int-or-string
 partition int32

apps.v1.StatefulSetOrdinals
 start int32

apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy
 whenDeleted Delete|Retain
 whenScaled string

apps.v1.StatefulSetSpec
 minReadySeconds int32
 ordinals .StatefulSetOrdinals
 persistentVolumeClaimRetentionPolicy .StatefulSetPersistentVolumeClaimRetentionPolicy
 podManagementPolicy OrderedReady|Parallel
 replicas int32
 revisionHistoryLimit int32
 selector! meta.v1.LabelSelector
 serviceName string
 template! core.v1.PodTemplateSpec
 updateStrategy .StatefulSetUpdateStrategy
 volumeClaimTemplates []core.v1.PersistentVolumeClaim

apps.v1.StatefulSetUpdateStrategy
 rollingUpdate .RollingUpdateStatefulSetStrategy
 type string

authentication.v1.BoundObjectReference <admissionregistration.v1.ParamKind
 name string
 uid string

authentication.v1.TokenRequestSpec
 attestations {}[]string
 audiences []string
 boundObjectRef .BoundObjectReference
 expirationSeconds int64

authentication.v1.TokenReviewSpec
 audiences []string
 token! string

authorization.v1.FieldSelectorAttributes
 rawSelector string
 requirements []meta.v1.FieldSelectorRequirement

authorization.v1.LabelSelectorAttributes
 rawSelector string
 requirements []meta.v1.LabelSelectorRequirement

authorization.v1.NonResourceAttributes
 path string
 verb string

authorization.v1.ResourceAttributes
 fieldSelector .FieldSelectorAttributes
 group string
 labelSelector .LabelSelectorAttributes
 name string
 namespace string
 resource string
 subresource string
 verb string
 version string

authorization.v1.SelfSubjectAccessReviewSpec
 nonResourceAttributes .NonResourceAttributes
 resourceAttributes .ResourceAttributes

authorization.v1.SelfSubjectRulesReviewSpec
 namespace string

authorization.v1.SubjectAccessReviewSpec <authorization.v1.SelfSubjectAccessReviewSpec
 extra {}[]string
 groups []string
 uid string
 user string

autoscaling.v1.CrossVersionObjectReference
 apiVersion string
 kind! string
 name! string

autoscaling.v1.HorizontalPodAutoscalerSpec
 maxReplicas! int32
 minReplicas int32
 scaleTargetRef! .CrossVersionObjectReference
 targetCPUUtilizationPercentage int32

autoscaling.v1.ScaleSpec
 replicas int32

autoscaling.v2.ContainerResourceMetricSource
 container! string
 name! string
 target! .MetricTarget

autoscaling.v2.CrossVersionObjectReference <autoscaling.v1.CrossVersionObjectReference

autoscaling.v2.ExternalMetricSource
 metric! .MetricIdentifier
 target! .MetricTarget

autoscaling.v2.HPAScalingPolicy
 periodSeconds! int32
 type! string
 value! int32

autoscaling.v2.HPAScalingRules
 policies [].HPAScalingPolicy
 selectPolicy string
 stabilizationWindowSeconds int32
 tolerance quantity

autoscaling.v2.HorizontalPodAutoscalerBehavior
 scaleDown .HPAScalingRules
 scaleUp .HPAScalingRules

autoscaling.v2.HorizontalPodAutoscalerSpec
 behavior .HorizontalPodAutoscalerBehavior
 maxReplicas! int32
 metrics [].MetricSpec
 minReplicas int32
 scaleTargetRef! .CrossVersionObjectReference

autoscaling.v2.MetricIdentifier
 name! string
 selector meta.v1.LabelSelector

autoscaling.v2.MetricSpec
 containerResource .ContainerResourceMetricSource
 external .ExternalMetricSource
 object .ObjectMetricSource
 pods .PodsMetricSource
 resource .ResourceMetricSource
 type! ContainerResource|External|Object|Pods|Resource

autoscaling.v2.MetricTarget
 averageUtilization int32
 averageValue quantity
 type! string
 value quantity

autoscaling.v2.ObjectMetricSource <autoscaling.v2.ExternalMetricSource
 describedObject! .CrossVersionObjectReference

autoscaling.v2.PodsMetricSource <autoscaling.v2.ExternalMetricSource

autoscaling.v2.ResourceMetricSource
 name! string
 target! .MetricTarget

batch.v1.CronJobSpec
 concurrencyPolicy Allow|Forbid|Replace
 failedJobsHistoryLimit int32
 jobTemplate! .JobTemplateSpec
 schedule! string
 startingDeadlineSeconds int64
 successfulJobsHistoryLimit int32
 suspend boolean
 timeZone string

batch.v1.JobSchedulingConfiguration
 disruptionMode scheduling.v1alpha3.WorkloadPodGroupDisruptionMode
 resourceClaims []scheduling.v1alpha3.WorkloadPodGroupResourceClaim
 schedulingConstraints scheduling.v1alpha3.WorkloadPodGroupSchedulingConstraints
 schedulingPolicy scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy

batch.v1.JobSpec
 activeDeadlineSeconds int64
 backoffLimit int32
 backoffLimitPerIndex int32
 completionMode Indexed|NonIndexed
 completions int32
 managedBy string
 manualSelector boolean
 maxFailedIndexes int32
 parallelism int32
 podFailurePolicy .PodFailurePolicy
 podReplacementPolicy Failed|TerminatingOrFailed
 scheduling .JobSchedulingConfiguration
 selector meta.v1.LabelSelector
 successPolicy .SuccessPolicy
 suspend boolean
 template! core.v1.PodTemplateSpec
 ttlSecondsAfterFinished int32

batch.v1.JobTemplateSpec
 metadata meta.v1.ObjectMeta
 spec! .JobSpec

batch.v1.PodFailurePolicy
 rules! [].PodFailurePolicyRule

batch.v1.PodFailurePolicyOnExitCodesRequirement
 containerName string
 operator! string
 values! []int32

batch.v1.PodFailurePolicyOnPodConditionsPattern
 status string
 type! string

batch.v1.PodFailurePolicyRule
 action! Count|FailIndex|FailJob|Ignore
 onExitCodes .PodFailurePolicyOnExitCodesRequirement
 onPodConditions [].PodFailurePolicyOnPodConditionsPattern

batch.v1.SuccessPolicy
 rules! [].SuccessPolicyRule

batch.v1.SuccessPolicyRule
 succeededCount int32
 succeededIndexes string

certificates.v1.CertificateSigningRequestSpec
 expirationSeconds int32
 extra {}[]string
 groups []string
 request! string
 signerName! string
 uid string
 usages []string
 username string

certificates.v1.ClusterTrustBundleSpec
 signerName string
 trustBundle! string

certificates.v1.PodCertificateRequestSpec
 maxExpirationSeconds int32
 nodeName! string
 nodeUID! string
 podName! string
 podUID! string
 serviceAccountName! string
 serviceAccountUID! string
 signerName! string
 stubPKCS10Request! string
 unverifiedUserAnnotations {}string

certificates.v1beta1.ClusterTrustBundleSpec <certificates.v1.ClusterTrustBundleSpec

certificates.v1beta1.PodCertificateRequestSpec <certificates.v1.PodCertificateRequestSpec
 pkixPublicKey string
 proofOfPossession string

coordination.v1.LeaseSpec
 acquireTime string
 holderIdentity string
 leaseDurationSeconds int32
 leaseTransitions int32
 preferredHolder string
 renewTime string
 strategy string

coordination.v1alpha2.LeaseCandidateSpec
 binaryVersion! string
 emulationVersion string
 leaseName! string
 pingTime string
 renewTime string
 strategy! string

coordination.v1beta1.LeaseCandidateSpec <coordination.v1alpha2.LeaseCandidateSpec

core.v1.AWSElasticBlockStoreVolumeSource
 fsType string
 partition int32
 readOnly boolean
 volumeID! string

core.v1.Affinity
 nodeAffinity .NodeAffinity
 podAffinity .PodAffinity
 podAntiAffinity .PodAntiAffinity

core.v1.AppArmorProfile
 localhostProfile string
 type! Localhost|RuntimeDefault|Unconfined

core.v1.AzureDiskVolumeSource
 cachingMode string
 diskName! string
 diskURI! string
 fsType string
 kind string
 readOnly boolean

core.v1.AzureFilePersistentVolumeSource
 readOnly boolean
 secretName! string
 secretNamespace string
 shareName! string

core.v1.AzureFileVolumeSource
 readOnly boolean
 secretName! string
 shareName! string

core.v1.CSIPersistentVolumeSource
 controllerExpandSecretRef .SecretReference
 controllerPublishSecretRef .SecretReference
 driver! string
 fsType string
 nodeExpandSecretRef .SecretReference
 nodePublishSecretRef .SecretReference
 nodeStageSecretRef .SecretReference
 readOnly boolean
 volumeAttributes {}string
 volumeHandle! string

core.v1.CSIVolumeSource
 driver! string
 fsType string
 nodePublishSecretRef .LocalObjectReference
 readOnly boolean
 volumeAttributes {}string

core.v1.Capabilities
 add []string
 drop []string

core.v1.CephFSPersistentVolumeSource
 monitors! []string
 path string
 readOnly boolean
 secretFile string
 secretRef .SecretReference
 user string

core.v1.CephFSVolumeSource
 monitors! []string
 path string
 readOnly boolean
 secretFile string
 secretRef .LocalObjectReference
 user string

core.v1.CinderPersistentVolumeSource
 fsType string
 readOnly boolean
 secretRef .SecretReference
 volumeID! string

core.v1.CinderVolumeSource
 fsType string
 readOnly boolean
 secretRef .LocalObjectReference
 volumeID! string

core.v1.ClientIPConfig
 timeoutSeconds int32

core.v1.ClusterTrustBundleProjection
 labelSelector meta.v1.LabelSelector
 name string
 optional boolean
 path! string
 signerName string
 user int64

core.v1.ComponentCondition
 error string
 message string
 status! string
 type! string

core.v1.ConfigMapEnvSource
 name string
 optional boolean

core.v1.ConfigMapKeySelector <core.v1.ConfigMapEnvSource
 key! string

core.v1.ConfigMapNodeConfigSource
 kubeletConfigKey! string
 name! string
 namespace! string
 resourceVersion string
 uid string

core.v1.ConfigMapProjection <core.v1.ConfigMapEnvSource
 items [].KeyToPath

core.v1.ConfigMapVolumeSource <core.v1.ConfigMapProjection
 defaultMode int32
 defaultUser int64

core.v1.Container
 args []string
 command []string
 env [].EnvVar
 envFrom [].EnvFromSource
 image string
 imagePullPolicy Always|IfNotPresent|Never
 lifecycle .Lifecycle
 livenessProbe .Probe
 name! string
 ports [].ContainerPort
 readinessProbe .Probe
 resizePolicy [].ContainerResizePolicy
 resources .ResourceRequirements
 restartPolicy string
 restartPolicyRules [].ContainerRestartRule
 securityContext .SecurityContext
 startupProbe .Probe
 stdin boolean
 stdinOnce boolean
 terminationMessagePath string
 terminationMessagePolicy File|FallbackToLogsOnError
 tty boolean
 volumeDevices [].VolumeDevice
 volumeMounts [].VolumeMount
 workingDir string

core.v1.ContainerPort
 containerPort! int32
 hostIP string
 hostPort int32
 name string
 protocol TCP|UDP|SCTP

core.v1.ContainerResizePolicy
 resourceName! string
 restartPolicy! string

core.v1.ContainerRestartRule
 action! string
 exitCodes .ContainerRestartRuleOnExitCodes

core.v1.ContainerRestartRuleOnExitCodes
 operator! string
 values []int32

core.v1.DownwardAPIProjection
 items [].DownwardAPIVolumeFile

core.v1.DownwardAPIVolumeFile
 fieldRef .ObjectFieldSelector
 mode int32
 path! string
 resourceFieldRef .ResourceFieldSelector
 user int64

core.v1.DownwardAPIVolumeSource <core.v1.DownwardAPIProjection
 defaultMode int32
 defaultUser int64

core.v1.EmptyDirVolumeSource
 medium string
 mode int32
 sizeLimit quantity

core.v1.EndpointAddress
 hostname string
 ip! string
 nodeName string
 targetRef .ObjectReference

core.v1.EndpointPort
 appProtocol string
 name string
 port! int32
 protocol string

core.v1.EndpointSubset
 addresses [].EndpointAddress
 notReadyAddresses [].EndpointAddress
 ports [].EndpointPort

core.v1.EnvFromSource
 configMapRef .ConfigMapEnvSource
 prefix string
 secretRef .SecretEnvSource

core.v1.EnvVar
 name! string
 value string
 valueFrom .EnvVarSource

core.v1.EnvVarSource
 configMapKeyRef .ConfigMapKeySelector
 fieldRef .ObjectFieldSelector
 fileKeyRef .FileKeySelector
 resourceFieldRef .ResourceFieldSelector
 secretKeyRef .SecretKeySelector

core.v1.EphemeralContainer <core.v1.Container
 targetContainerName string

core.v1.EphemeralVolumeSource
 volumeClaimTemplate .PersistentVolumeClaimTemplate

core.v1.EventSeries
 count int32
 lastObservedTime string

core.v1.EventSource
 component string
 host string

core.v1.EvictionResponder
 name! string
 priority! int32

core.v1.ExecAction
 command []string

core.v1.FCVolumeSource
 fsType string
 lun int32
 readOnly boolean
 targetWWNs []string
 wwids []string

core.v1.FileKeySelector
 key! string
 optional boolean
 path! string
 volumeName! string

core.v1.FlexPersistentVolumeSource
 driver! string
 fsType string
 options {}string
 readOnly boolean
 secretRef .SecretReference

core.v1.FlexVolumeSource
 driver! string
 fsType string
 options {}string
 readOnly boolean
 secretRef .LocalObjectReference

core.v1.FlockerVolumeSource
 datasetName string
 datasetUUID string

core.v1.GCEPersistentDiskVolumeSource
 fsType string
 partition int32
 pdName! string
 readOnly boolean

core.v1.GRPCAction
 mode string
 port! int32
 service string

core.v1.GitRepoVolumeSource
 directory string
 repository! string
 revision string

core.v1.GlusterfsPersistentVolumeSource
 endpoints! string
 endpointsNamespace string
 path! string
 readOnly boolean

core.v1.GlusterfsVolumeSource
 endpoints! string
 path! string
 readOnly boolean

core.v1.HTTPGetAction
 host string
 httpHeaders [].HTTPHeader
 path string
 port! int-or-string
 protocol string
 scheme HTTP|HTTPS

core.v1.HTTPHeader
 name! string
 value! string

core.v1.HostAlias
 hostnames []string
 ip! string

core.v1.HostPathVolumeSource
 path! string
 type string

core.v1.ISCSIPersistentVolumeSource
 chapAuthDiscovery boolean
 chapAuthSession boolean
 fsType string
 initiatorName string
 iqn! string
 iscsiInterface string
 lun! int32
 portals []string
 readOnly boolean
 secretRef .SecretReference
 targetPortal! string

core.v1.ISCSIVolumeSource
 chapAuthDiscovery boolean
 chapAuthSession boolean
 fsType string
 initiatorName string
 iqn! string
 iscsiInterface string
 lun! int32
 portals []string
 readOnly boolean
 secretRef .LocalObjectReference
 targetPortal! string

core.v1.ImageVolumeSource
 pullPolicy Always|IfNotPresent|Never
 reference string

core.v1.KeyToPath
 key! string
 mode int32
 path! string
 user int64

core.v1.Lifecycle
 postStart .LifecycleHandler
 preStop .LifecycleHandler
 stopSignal string

core.v1.LifecycleHandler
 exec .ExecAction
 httpGet .HTTPGetAction
 sleep .SleepAction
 tcpSocket .TCPSocketAction

core.v1.LimitRangeItem
 default {}quantity
 defaultRequest {}quantity
 max {}quantity
 maxLimitRequestRatio {}quantity
 min {}quantity
 type! string

core.v1.LimitRangeSpec
 limits! [].LimitRangeItem

core.v1.LocalObjectReference
 name string

core.v1.LocalVolumeSource
 fsType string
 path! string

core.v1.NFSVolumeSource
 path! string
 readOnly boolean
 server! string

core.v1.NamespaceSpec
 finalizers []string

core.v1.NodeAffinity
 preferredDuringSchedulingIgnoredDuringExecution [].PreferredSchedulingTerm
 requiredDuringSchedulingIgnoredDuringExecution .NodeSelector

core.v1.NodeConfigSource
 configMap .ConfigMapNodeConfigSource

core.v1.NodePodPreemptionPolicy
 disableResizePreemption []string

core.v1.NodeSelector
 nodeSelectorTerms! [].NodeSelectorTerm

core.v1.NodeSelectorRequirement
 key! string
 operator! DoesNotExist|Exists|Gt|In|Lt|NotIn
 values []string

core.v1.NodeSelectorTerm
 matchExpressions [].NodeSelectorRequirement
 matchFields [].NodeSelectorRequirement

core.v1.NodeSpec
 configSource .NodeConfigSource
 externalID string
 podCIDR string
 podCIDRs []string
 podPreemptionPolicy .NodePodPreemptionPolicy
 providerID string
 taints [].Taint
 unschedulable boolean

core.v1.ObjectFieldSelector
 apiVersion string
 fieldPath! string

core.v1.ObjectReference <authentication.v1.BoundObjectReference
 fieldPath string
 namespace string
 resourceVersion string

core.v1.PersistentVolumeClaimSpec
 accessModes []string
 dataSource .TypedLocalObjectReference
 dataSourceRef .TypedObjectReference
 resources .VolumeResourceRequirements
 selector meta.v1.LabelSelector
 storageClassName string
 volumeAttributesClassName string
 volumeMode Block|Filesystem
 volumeName string

core.v1.PersistentVolumeClaimTemplate
 metadata meta.v1.ObjectMeta
 spec! .PersistentVolumeClaimSpec

core.v1.PersistentVolumeClaimVolumeSource
 claimName! string
 readOnly boolean

core.v1.PersistentVolumeSpec
 accessModes []string
 awsElasticBlockStore .AWSElasticBlockStoreVolumeSource
 azureDisk .AzureDiskVolumeSource
 azureFile .AzureFilePersistentVolumeSource
 capacity {}quantity
 cephfs .CephFSPersistentVolumeSource
 cinder .CinderPersistentVolumeSource
 claimRef .ObjectReference
 csi .CSIPersistentVolumeSource
 fc .FCVolumeSource
 flexVolume .FlexPersistentVolumeSource
 flocker .FlockerVolumeSource
 gcePersistentDisk .GCEPersistentDiskVolumeSource
 glusterfs .GlusterfsPersistentVolumeSource
 hostPath .HostPathVolumeSource
 iscsi .ISCSIPersistentVolumeSource
 local .LocalVolumeSource
 mountOptions []string
 nfs .NFSVolumeSource
 nodeAffinity .VolumeNodeAffinity
 persistentVolumeReclaimPolicy string
 photonPersistentDisk .PhotonPersistentDiskVolumeSource
 portworxVolume .PortworxVolumeSource
 quobyte .QuobyteVolumeSource
 rbd .RBDPersistentVolumeSource
 scaleIO .ScaleIOPersistentVolumeSource
 storageClassName string
 storageos .StorageOSPersistentVolumeSource
 volumeAttributesClassName string
 volumeMode Block|Filesystem
 vsphereVolume .VsphereVirtualDiskVolumeSource

core.v1.PhotonPersistentDiskVolumeSource
 fsType string
 pdID! string

core.v1.PodAffinity
 preferredDuringSchedulingIgnoredDuringExecution [].WeightedPodAffinityTerm
 requiredDuringSchedulingIgnoredDuringExecution [].PodAffinityTerm

core.v1.PodAffinityTerm
 labelSelector meta.v1.LabelSelector
 matchLabelKeys []string
 mismatchLabelKeys []string
 namespaceSelector meta.v1.LabelSelector
 namespaces []string
 topologyKey! string

core.v1.PodAntiAffinity <core.v1.PodAffinity

core.v1.PodCertificateProjection
 certificateChainPath string
 credentialBundlePath string
 keyPath string
 keyType! string
 maxExpirationSeconds int32
 signerName! string
 user int64
 userAnnotations {}string

core.v1.PodDNSConfig
 nameservers []string
 options [].PodDNSConfigOption
 searches []string

core.v1.PodDNSConfigOption <core.v1.LocalObjectReference
 value string

core.v1.PodOS
 name! string

core.v1.PodReadinessGate
 conditionType! string

core.v1.PodResourceClaim <core.v1.PodOS
 resourceClaimName string
 resourceClaimTemplateName string

core.v1.PodSchedulingGate <core.v1.PodOS

core.v1.PodSchedulingGroup
 podGroupName string

core.v1.PodSecurityContext
 appArmorProfile .AppArmorProfile
 fsGroup int64
 fsGroupChangePolicy Always|OnRootMismatch
 runAsGroup int64
 runAsNonRoot boolean
 runAsUser int64
 seLinuxChangePolicy string
 seLinuxOptions .SELinuxOptions
 seccompProfile .SeccompProfile
 supplementalGroups []int64
 supplementalGroupsPolicy string
 sysctls [].Sysctl
 windowsOptions .WindowsSecurityContextOptions

core.v1.PodSpec
 activeDeadlineSeconds int64
 affinity .Affinity
 automountServiceAccountToken boolean
 containers! [].Container
 dnsConfig .PodDNSConfig
 dnsPolicy ClusterFirst|ClusterFirstWithHostNet|Default|None
 enableServiceLinks boolean
 ephemeralContainers [].EphemeralContainer
 evictionResponders [].EvictionResponder
 hostAliases [].HostAlias
 hostIPC boolean
 hostNetwork boolean
 hostPID boolean
 hostUsers boolean
 hostname string
 hostnameOverride string
 imagePullSecrets [].LocalObjectReference
 initContainers [].Container
 nodeName string
 nodeSelector {}string
 os .PodOS
 overhead {}quantity
 preemptionPolicy Never|PreemptLowerPriority
 priority int32
 priorityClassName string
 readinessGates [].PodReadinessGate
 resourceClaims [].PodResourceClaim
 resources .ResourceRequirements
 restartPolicy Always|OnFailure|Never
 runtimeClassName string
 schedulerName string
 schedulingGates [].PodSchedulingGate
 schedulingGroup .PodSchedulingGroup
 securityContext .PodSecurityContext
 serviceAccount string
 serviceAccountName string
 setHostnameAsFQDN boolean
 shareProcessNamespace boolean
 subdomain string
 terminationGracePeriodSeconds int64
 tolerations [].Toleration
 topologySpreadConstraints [].TopologySpreadConstraint
 volumes [].Volume

core.v1.PodTemplateSpec
 metadata meta.v1.ObjectMeta
 spec! .PodSpec

core.v1.PortworxVolumeSource
 fsType string
 readOnly boolean
 volumeID! string

core.v1.PreferredSchedulingTerm
 preference! .NodeSelectorTerm
 weight! int32

core.v1.Probe <core.v1.ClientIPConfig
 exec .ExecAction
 failureThreshold int32
 grpc .GRPCAction
 httpGet .HTTPGetAction
 initialDelaySeconds int32
 periodSeconds int32
 successThreshold int32
 tcpSocket .TCPSocketAction
 terminationGracePeriodSeconds int64

core.v1.ProjectedVolumeSource
 defaultMode int32
 defaultUser int64
 sources [].VolumeProjection

core.v1.QuobyteVolumeSource
 group string
 readOnly boolean
 registry! string
 tenant string
 user string
 volume! string

core.v1.RBDPersistentVolumeSource
 fsType string
 image! string
 keyring string
 monitors! []string
 pool string
 readOnly boolean
 secretRef .SecretReference
 user string

core.v1.RBDVolumeSource
 fsType string
 image! string
 keyring string
 monitors! []string
 pool string
 readOnly boolean
 secretRef .LocalObjectReference
 user string

core.v1.ReplicationControllerSpec <autoscaling.v1.ScaleSpec
 minReadySeconds int32
 selector {}string
 template .PodTemplateSpec

core.v1.ResourceClaim <core.v1.PodOS
 request string

core.v1.ResourceFieldSelector
 containerName string
 divisor quantity
 resource! string

core.v1.ResourceQuotaSpec
 hard {}quantity
 scopeSelector .ScopeSelector
 scopes []string

core.v1.ResourceRequirements
 claims [].ResourceClaim
 limits {}quantity
 requests {}quantity

core.v1.SELinuxOptions
 level string
 role string
 type string
 user string

core.v1.ScaleIOPersistentVolumeSource
 fsType string
 gateway! string
 protectionDomain string
 readOnly boolean
 secretRef! .SecretReference
 sslEnabled boolean
 storageMode string
 storagePool string
 system! string
 volumeName string

core.v1.ScaleIOVolumeSource
 fsType string
 gateway! string
 protectionDomain string
 readOnly boolean
 secretRef! .LocalObjectReference
 sslEnabled boolean
 storageMode string
 storagePool string
 system! string
 volumeName string

core.v1.ScopeSelector
 matchExpressions [].ScopedResourceSelectorRequirement

core.v1.ScopedResourceSelectorRequirement
 operator! string
 scopeName! string
 values []string

core.v1.SeccompProfile <core.v1.AppArmorProfile

core.v1.SecretEnvSource <core.v1.ConfigMapEnvSource

core.v1.SecretKeySelector <core.v1.ConfigMapKeySelector

core.v1.SecretProjection <core.v1.ConfigMapProjection

core.v1.SecretReference <authorization.v1.SelfSubjectRulesReviewSpec
 name string

core.v1.SecretVolumeSource
 defaultMode int32
 defaultUser int64
 items [].KeyToPath
 optional boolean
 secretName string

core.v1.SecurityContext
 allowPrivilegeEscalation boolean
 appArmorProfile .AppArmorProfile
 capabilities .Capabilities
 privileged boolean
 procMount string
 readOnlyRootFilesystem boolean
 runAsGroup int64
 runAsNonRoot boolean
 runAsUser int64
 seLinuxOptions .SELinuxOptions
 seccompProfile .SeccompProfile
 windowsOptions .WindowsSecurityContextOptions

core.v1.ServiceAccountTokenProjection
 audience string
 expirationSeconds int64
 path! string
 user int64

core.v1.ServicePort <core.v1.LocalObjectReference
 appProtocol string
 nodePort int32
 port! int32
 protocol TCP|UDP|SCTP
 targetPort int-or-string

core.v1.ServiceSpec
 allocateLoadBalancerNodePorts boolean
 clusterIP string
 clusterIPs []string
 externalIPs []string
 externalName string
 externalTrafficPolicy Cluster|Local
 healthCheckNodePort int32
 internalTrafficPolicy Cluster|Local
 ipFamilies []string
 ipFamilyPolicy PreferDualStack|RequireDualStack|SingleStack
 loadBalancerClass string
 loadBalancerIP string
 loadBalancerSourceRanges []string
 ports [].ServicePort
 publishNotReadyAddresses boolean
 selector {}string
 sessionAffinity ClientIP|None
 sessionAffinityConfig .SessionAffinityConfig
 trafficDistribution string
 type ClusterIP|ExternalName|LoadBalancer|NodePort

core.v1.SessionAffinityConfig
 clientIP .ClientIPConfig

core.v1.SleepAction
 seconds! int64

core.v1.StorageOSPersistentVolumeSource
 fsType string
 readOnly boolean
 secretRef .ObjectReference
 volumeName string
 volumeNamespace string

core.v1.StorageOSVolumeSource
 fsType string
 readOnly boolean
 secretRef .LocalObjectReference
 volumeName string
 volumeNamespace string

core.v1.Sysctl <core.v1.HTTPHeader

core.v1.TCPSocketAction
 host string
 port! int-or-string

core.v1.Taint
 effect! NoExecute|NoSchedule|PreferNoSchedule
 key! string
 timeAdded string
 value string

core.v1.Toleration
 effect NoExecute|NoSchedule|PreferNoSchedule
 key string
 operator Equal|Exists|Gt|Lt
 tolerationSeconds int64
 value string

core.v1.TopologySelectorLabelRequirement
 key! string
 values! []string

core.v1.TopologySelectorTerm
 matchLabelExpressions [].TopologySelectorLabelRequirement

core.v1.TopologySpreadConstraint
 labelSelector meta.v1.LabelSelector
 matchLabelKeys []string
 maxSkew! int32
 minDomains int32
 nodeAffinityPolicy Honor|Ignore
 nodeTaintsPolicy Honor|Ignore
 topologyKey! string
 whenUnsatisfiable! DoNotSchedule|ScheduleAnyway

core.v1.TypedLocalObjectReference <core.v1.PodOS
 apiGroup string
 kind! string

core.v1.TypedObjectReference <core.v1.TypedLocalObjectReference
 namespace string

core.v1.Volume <core.v1.PodOS
 awsElasticBlockStore .AWSElasticBlockStoreVolumeSource
 azureDisk .AzureDiskVolumeSource
 azureFile .AzureFileVolumeSource
 cephfs .CephFSVolumeSource
 cinder .CinderVolumeSource
 configMap .ConfigMapVolumeSource
 csi .CSIVolumeSource
 downwardAPI .DownwardAPIVolumeSource
 emptyDir .EmptyDirVolumeSource
 ephemeral .EphemeralVolumeSource
 fc .FCVolumeSource
 flexVolume .FlexVolumeSource
 flocker .FlockerVolumeSource
 gcePersistentDisk .GCEPersistentDiskVolumeSource
 gitRepo .GitRepoVolumeSource
 glusterfs .GlusterfsVolumeSource
 hostPath .HostPathVolumeSource
 image .ImageVolumeSource
 iscsi .ISCSIVolumeSource
 nfs .NFSVolumeSource
 persistentVolumeClaim .PersistentVolumeClaimVolumeSource
 photonPersistentDisk .PhotonPersistentDiskVolumeSource
 portworxVolume .PortworxVolumeSource
 projected .ProjectedVolumeSource
 quobyte .QuobyteVolumeSource
 rbd .RBDVolumeSource
 scaleIO .ScaleIOVolumeSource
 secret .SecretVolumeSource
 storageos .StorageOSVolumeSource
 vsphereVolume .VsphereVirtualDiskVolumeSource

core.v1.VolumeDevice <core.v1.PodOS
 devicePath! string

core.v1.VolumeMount <core.v1.PodOS
 bindMountOptions []string
 mountPath! string
 mountPropagation Bidirectional|HostToContainer|None
 readOnly boolean
 recursiveReadOnly string
 subPath string
 subPathExpr string

core.v1.VolumeNodeAffinity
 required .NodeSelector

core.v1.VolumeProjection
 clusterTrustBundle .ClusterTrustBundleProjection
 configMap .ConfigMapProjection
 downwardAPI .DownwardAPIProjection
 podCertificate .PodCertificateProjection
 secret .SecretProjection
 serviceAccountToken .ServiceAccountTokenProjection

core.v1.VolumeResourceRequirements
 limits {}quantity
 requests {}quantity

core.v1.VsphereVirtualDiskVolumeSource
 fsType string
 storagePolicyID string
 storagePolicyName string
 volumePath! string

core.v1.WeightedPodAffinityTerm
 podAffinityTerm! .PodAffinityTerm
 weight! int32

core.v1.WindowsSecurityContextOptions
 gmsaCredentialSpec string
 gmsaCredentialSpecName string
 hostProcess boolean
 runAsUserName string

discovery.v1.Endpoint
 addresses! []string
 conditions .EndpointConditions
 deprecatedTopology {}string
 hints .EndpointHints
 hostname string
 nodeName string
 targetRef core.v1.ObjectReference
 zone string

discovery.v1.EndpointConditions
 ready boolean
 serving boolean
 terminating boolean

discovery.v1.EndpointHints
 forNodes [].ForNode
 forZones [].ForZone

discovery.v1.EndpointPort <core.v1.LocalObjectReference
 appProtocol string
 port int32
 protocol string

discovery.v1.ForNode <core.v1.PodOS

discovery.v1.ForZone <core.v1.PodOS

events.v1.EventSeries
 count! int32
 lastObservedTime! string

flowcontrol.v1.ExemptPriorityLevelConfiguration
 lendablePercent int32
 nominalConcurrencyShares int32

flowcontrol.v1.FlowDistinguisherMethod
 type! string

flowcontrol.v1.FlowSchemaSpec
 distinguisherMethod .FlowDistinguisherMethod
 matchingPrecedence int32
 priorityLevelConfiguration! .PriorityLevelConfigurationReference
 rules [].PolicyRulesWithSubjects

flowcontrol.v1.GroupSubject <core.v1.PodOS

flowcontrol.v1.LimitResponse <flowcontrol.v1.FlowDistinguisherMethod
 queuing .QueuingConfiguration

flowcontrol.v1.LimitedPriorityLevelConfiguration <flowcontrol.v1.ExemptPriorityLevelConfiguration
 borrowingLimitPercent int32
 limitResponse! .LimitResponse

flowcontrol.v1.NonResourcePolicyRule
 nonResourceURLs! []string
 verbs! []string

flowcontrol.v1.PolicyRulesWithSubjects
 nonResourceRules [].NonResourcePolicyRule
 resourceRules [].ResourcePolicyRule
 subjects! [].Subject

flowcontrol.v1.PriorityLevelConfigurationReference <core.v1.PodOS

flowcontrol.v1.PriorityLevelConfigurationSpec <flowcontrol.v1.FlowDistinguisherMethod
 exempt .ExemptPriorityLevelConfiguration
 limited .LimitedPriorityLevelConfiguration

flowcontrol.v1.QueuingConfiguration
 handSize int32
 queueLengthLimit int32
 queues int32

flowcontrol.v1.ResourcePolicyRule
 apiGroups! []string
 clusterScope boolean
 namespaces []string
 resources! []string
 verbs! []string

flowcontrol.v1.ServiceAccountSubject <core.v1.PodOS
 namespace! string

flowcontrol.v1.Subject
 group .GroupSubject
 kind! string
 serviceAccount .ServiceAccountSubject
 user .UserSubject

flowcontrol.v1.UserSubject <core.v1.PodOS

lifecycle.v1alpha1.EvictionPodReference <core.v1.PodOS
 uid! string

lifecycle.v1alpha1.EvictionRequestPodReference <lifecycle.v1alpha1.EvictionPodReference

lifecycle.v1alpha1.EvictionRequestSpec
 intent! string
 requester! string
 target! .EvictionRequestTarget

lifecycle.v1alpha1.EvictionRequestTarget
 pod .EvictionRequestPodReference

lifecycle.v1alpha1.EvictionSpec
 target! .EvictionTarget

lifecycle.v1alpha1.EvictionTarget
 pod .EvictionPodReference

meta.v1.DeleteOptions <admissionregistration.v1.ParamKind
 dryRun []string
 gracePeriodSeconds int64
 ignoreStoreReadErrorWithClusterBreakingPotential boolean
 orphanDependents boolean
 preconditions .Preconditions
 propagationPolicy string

meta.v1.FieldSelectorRequirement
 key! string
 operator! string
 values []string

meta.v1.GroupResource
 group! string
 resource! string

meta.v1.LabelSelector
 matchExpressions [].LabelSelectorRequirement
 matchLabels {}string

meta.v1.LabelSelectorRequirement
 key! string
 operator! DoesNotExist|Exists|In|NotIn
 values []string

meta.v1.ObjectMeta <core.v1.SecretReference
 annotations {}string
 creationTimestamp string
 deletionGracePeriodSeconds int64
 deletionTimestamp string
 finalizers []string
 generateName string
 generation int64
 labels {}string
 managedFields *
 ownerReferences [].OwnerReference
 resourceVersion string
 selfLink string
 uid string

meta.v1.OwnerReference <lifecycle.v1alpha1.EvictionPodReference
 apiVersion! string
 blockOwnerDeletion boolean
 controller boolean
 kind! string

meta.v1.Preconditions
 resourceVersion string
 uid string

networking.v1.HTTPIngressPath
 backend! .IngressBackend
 path string
 pathType! string

networking.v1.HTTPIngressRuleValue
 paths! [].HTTPIngressPath

networking.v1.IPAddressSpec
 parentRef! .ParentReference

networking.v1.IPBlock
 cidr! string
 except []string

networking.v1.IngressBackend
 resource core.v1.TypedLocalObjectReference
 service .IngressServiceBackend

networking.v1.IngressClassParametersReference <core.v1.TypedObjectReference
 scope string

networking.v1.IngressClassSpec
 controller string
 parameters .IngressClassParametersReference

networking.v1.IngressRule
 host string
 http .HTTPIngressRuleValue

networking.v1.IngressServiceBackend <core.v1.PodOS
 port .ServiceBackendPort

networking.v1.IngressSpec
 defaultBackend .IngressBackend
 ingressClassName string
 rules [].IngressRule
 tls [].IngressTLS

networking.v1.IngressTLS
 hosts []string
 secretName string

networking.v1.NetworkPolicyEgressRule
 ports [].NetworkPolicyPort
 to [].NetworkPolicyPeer

networking.v1.NetworkPolicyIngressRule
 from [].NetworkPolicyPeer
 ports [].NetworkPolicyPort

networking.v1.NetworkPolicyPeer
 ipBlock .IPBlock
 namespaceSelector meta.v1.LabelSelector
 podSelector meta.v1.LabelSelector

networking.v1.NetworkPolicyPort
 endPort int32
 port int-or-string
 protocol string

networking.v1.NetworkPolicySpec
 egress [].NetworkPolicyEgressRule
 ingress [].NetworkPolicyIngressRule
 podSelector meta.v1.LabelSelector
 policyTypes []string

networking.v1.ParentReference <authorization.v1.SelfSubjectRulesReviewSpec
 group string
 name! string
 resource! string

networking.v1.ServiceBackendPort <core.v1.LocalObjectReference
 number int32

networking.v1.ServiceCIDRSpec
 cidrs []string

node.v1.Overhead
 podFixed {}quantity

node.v1.Scheduling
 nodeSelector {}string
 tolerations []core.v1.Toleration

policy.v1.PodDisruptionBudgetSpec
 maxUnavailable int-or-string
 minAvailable int-or-string
 selector meta.v1.LabelSelector
 unhealthyPodEvictionPolicy AlwaysAllow|IfHealthyBudget

rbac.v1.AggregationRule
 clusterRoleSelectors []meta.v1.LabelSelector

rbac.v1.PolicyRule
 apiGroups []string
 nonResourceURLs []string
 resourceNames []string
 resources []string
 verbs! []string

rbac.v1.RoleRef <core.v1.TypedLocalObjectReference

rbac.v1.Subject <core.v1.TypedObjectReference

resource.v1.CELDeviceSelector
 expression! string

resource.v1.CapacityRequestPolicy
 default quantity
 validRange .CapacityRequestPolicyRange
 validValues []quantity

resource.v1.CapacityRequestPolicyRange
 max quantity
 min! quantity
 step quantity

resource.v1.CapacityRequirements
 requests {}quantity

resource.v1.Counter
 value! quantity

resource.v1.CounterSet <core.v1.PodOS
 counters! {}.Counter

resource.v1.Device <core.v1.PodOS
 allNodes boolean
 allowMultipleAllocations boolean
 attributes {}.DeviceAttribute
 bindingConditions []string
 bindingFailureConditions []string
 bindsToNode boolean
 capacity {}.DeviceCapacity
 consumesCounters [].DeviceCounterConsumption
 nodeAllocatableResources {}.NodeAllocatableResource
 nodeName string
 nodeSelector core.v1.NodeSelector
 taints [].DeviceTaint

resource.v1.DeviceAttribute
 bool boolean
 bools []boolean
 int int64
 ints []int64
 string string
 strings []string
 version string
 versions []string

resource.v1.DeviceCapacity <resource.v1.Counter
 requestPolicy .CapacityRequestPolicy

resource.v1.DeviceClaim
 config [].DeviceClaimConfiguration
 constraints [].DeviceConstraint
 requests [].DeviceRequest

resource.v1.DeviceClaimConfiguration
 opaque .OpaqueDeviceConfiguration
 requests []string

resource.v1.DeviceClassConfiguration
 opaque .OpaqueDeviceConfiguration

resource.v1.DeviceClassSpec
 config [].DeviceClassConfiguration
 extendedResourceName string
 selectors [].DeviceSelector

resource.v1.DeviceConstraint
 distinctAttribute string
 matchAttribute string
 requests []string

resource.v1.DeviceCounterConsumption
 compatibilityGroups []string
 counterSet! string
 counters! {}.Counter

resource.v1.DeviceDerivedAttribute <admissionregistration.v1.MatchCondition

resource.v1.DeviceRequest <core.v1.PodOS
 exactly .ExactDeviceRequest
 firstAvailable [].DeviceSubRequest

resource.v1.DeviceSelector
 cel .CELDeviceSelector

resource.v1.DeviceSubRequest <core.v1.PodOS
 allocationMode string
 capacity .CapacityRequirements
 count int64
 derivedAttributes [].DeviceDerivedAttribute
 deviceClassName! string
 selectors [].DeviceSelector
 tolerations [].DeviceToleration

resource.v1.DeviceTaint
 effect! string
 key! string
 timeAdded string
 value string

resource.v1.DeviceTaintRuleSpec
 deviceSelector .DeviceTaintSelector
 taint! .DeviceTaint

resource.v1.DeviceTaintSelector
 device string
 driver string
 pool string

resource.v1.DeviceToleration
 effect string
 key string
 operator string
 tolerationSeconds int64
 value string

resource.v1.ExactDeviceRequest
 adminAccess boolean
 allocationMode string
 capacity .CapacityRequirements
 count int64
 derivedAttributes [].DeviceDerivedAttribute
 deviceClassName! string
 selectors [].DeviceSelector
 tolerations [].DeviceToleration

resource.v1.NodeAllocatableMapping
 capacityKey string
 capacityMultiplier quantity
 deviceMultiplier quantity

resource.v1.NodeAllocatableOverhead
 perContainer quantity
 perPod quantity

resource.v1.NodeAllocatableResource
 mapping .NodeAllocatableMapping
 overhead .NodeAllocatableOverhead

resource.v1.OpaqueDeviceConfiguration
 driver! string
 parameters! *

resource.v1.ResourceClaimSpec
 devices .DeviceClaim

resource.v1.ResourceClaimTemplateSpec
 metadata meta.v1.ObjectMeta
 spec .ResourceClaimSpec

resource.v1.ResourcePool <core.v1.PodOS
 generation! int64
 resourceSliceCount! int64

resource.v1.ResourceSliceSpec
 allNodes boolean
 devices [].Device
 driver! string
 nodeName string
 nodeSelector core.v1.NodeSelector
 partitionTypeAttribute string
 perDeviceNodeSelection boolean
 pool! .ResourcePool
 sharedCounters [].CounterSet
 skipNodeOperations []string

resource.v1alpha3.DeviceTaint <resource.v1.DeviceTaint

resource.v1alpha3.DeviceTaintRuleSpec <resource.v1.DeviceTaintRuleSpec

resource.v1alpha3.DeviceTaintSelector <resource.v1.DeviceTaintSelector

resource.v1alpha3.ResourcePoolStatusRequestSpec
 defaultPartitionTypeAttribute string
 driver! string
 limit int32
 poolName string

resource.v1beta1.BasicDevice
 allNodes boolean
 allowMultipleAllocations boolean
 attributes {}.DeviceAttribute
 bindingConditions []string
 bindingFailureConditions []string
 bindsToNode boolean
 capacity {}.DeviceCapacity
 consumesCounters [].DeviceCounterConsumption
 nodeAllocatableResources {}.NodeAllocatableResource
 nodeName string
 nodeSelector core.v1.NodeSelector
 taints [].DeviceTaint

resource.v1beta1.CELDeviceSelector <resource.v1.CELDeviceSelector

resource.v1beta1.CapacityRequestPolicy <resource.v1.CapacityRequestPolicy

resource.v1beta1.CapacityRequestPolicyRange <resource.v1.CapacityRequestPolicyRange

resource.v1beta1.CapacityRequirements <resource.v1.CapacityRequirements

resource.v1beta1.Counter <resource.v1.Counter

resource.v1beta1.CounterSet <resource.v1.CounterSet

resource.v1beta1.Device <core.v1.PodOS
 basic .BasicDevice

resource.v1beta1.DeviceAttribute <resource.v1.DeviceAttribute

resource.v1beta1.DeviceCapacity <resource.v1.DeviceCapacity

resource.v1beta1.DeviceClaim <resource.v1.DeviceClaim

resource.v1beta1.DeviceClaimConfiguration <resource.v1.DeviceClaimConfiguration

resource.v1beta1.DeviceClassConfiguration <resource.v1.DeviceClassConfiguration

resource.v1beta1.DeviceClassSpec <resource.v1.DeviceClassSpec

resource.v1beta1.DeviceConstraint <resource.v1.DeviceConstraint

resource.v1beta1.DeviceCounterConsumption <resource.v1.DeviceCounterConsumption

resource.v1beta1.DeviceDerivedAttribute <admissionregistration.v1.MatchCondition

resource.v1beta1.DeviceRequest <core.v1.PodOS
 adminAccess boolean
 allocationMode string
 capacity .CapacityRequirements
 count int64
 derivedAttributes [].DeviceDerivedAttribute
 deviceClassName string
 firstAvailable [].DeviceSubRequest
 selectors [].DeviceSelector
 tolerations [].DeviceToleration

resource.v1beta1.DeviceSelector <resource.v1.DeviceSelector

resource.v1beta1.DeviceSubRequest <resource.v1.DeviceSubRequest

resource.v1beta1.DeviceTaint <resource.v1.DeviceTaint

resource.v1beta1.DeviceToleration <resource.v1.DeviceToleration

resource.v1beta1.NodeAllocatableMapping <resource.v1.NodeAllocatableMapping

resource.v1beta1.NodeAllocatableOverhead <resource.v1.NodeAllocatableOverhead

resource.v1beta1.NodeAllocatableResource <resource.v1.NodeAllocatableResource

resource.v1beta1.OpaqueDeviceConfiguration <resource.v1.OpaqueDeviceConfiguration

resource.v1beta1.ResourceClaimSpec <resource.v1.ResourceClaimSpec

resource.v1beta1.ResourceClaimTemplateSpec <resource.v1.ResourceClaimTemplateSpec

resource.v1beta1.ResourcePool <resource.v1.ResourcePool

resource.v1beta1.ResourceSliceSpec <resource.v1.ResourceSliceSpec

resource.v1beta2.CELDeviceSelector <resource.v1.CELDeviceSelector

resource.v1beta2.CapacityRequestPolicy <resource.v1.CapacityRequestPolicy

resource.v1beta2.CapacityRequestPolicyRange <resource.v1.CapacityRequestPolicyRange

resource.v1beta2.CapacityRequirements <resource.v1.CapacityRequirements

resource.v1beta2.Counter <resource.v1.Counter

resource.v1beta2.CounterSet <resource.v1.CounterSet

resource.v1beta2.Device <resource.v1.Device

resource.v1beta2.DeviceAttribute <resource.v1.DeviceAttribute

resource.v1beta2.DeviceCapacity <resource.v1.DeviceCapacity

resource.v1beta2.DeviceClaim <resource.v1.DeviceClaim

resource.v1beta2.DeviceClaimConfiguration <resource.v1.DeviceClaimConfiguration

resource.v1beta2.DeviceClassConfiguration <resource.v1.DeviceClassConfiguration

resource.v1beta2.DeviceClassSpec <resource.v1.DeviceClassSpec

resource.v1beta2.DeviceConstraint <resource.v1.DeviceConstraint

resource.v1beta2.DeviceCounterConsumption <resource.v1.DeviceCounterConsumption

resource.v1beta2.DeviceDerivedAttribute <admissionregistration.v1.MatchCondition

resource.v1beta2.DeviceRequest <resource.v1.DeviceRequest

resource.v1beta2.DeviceSelector <resource.v1.DeviceSelector

resource.v1beta2.DeviceSubRequest <resource.v1.DeviceSubRequest

resource.v1beta2.DeviceTaint <resource.v1.DeviceTaint

resource.v1beta2.DeviceTaintRuleSpec <resource.v1.DeviceTaintRuleSpec

resource.v1beta2.DeviceTaintSelector <resource.v1.DeviceTaintSelector

resource.v1beta2.DeviceToleration <resource.v1.DeviceToleration

resource.v1beta2.ExactDeviceRequest <resource.v1.ExactDeviceRequest

resource.v1beta2.NodeAllocatableMapping <resource.v1.NodeAllocatableMapping

resource.v1beta2.NodeAllocatableOverhead <resource.v1.NodeAllocatableOverhead

resource.v1beta2.NodeAllocatableResource <resource.v1.NodeAllocatableResource

resource.v1beta2.OpaqueDeviceConfiguration <resource.v1.OpaqueDeviceConfiguration

resource.v1beta2.ResourceClaimSpec <resource.v1.ResourceClaimSpec

resource.v1beta2.ResourceClaimTemplateSpec <resource.v1.ResourceClaimTemplateSpec

resource.v1beta2.ResourcePool <resource.v1.ResourcePool

resource.v1beta2.ResourceSliceSpec <resource.v1.ResourceSliceSpec

scheduling.v1alpha3.AllCompositeDisruptionMode

scheduling.v1alpha3.AllDisruptionMode

scheduling.v1alpha3.BasicSchedulingPolicy

scheduling.v1alpha3.CompositeBasicSchedulingPolicy

scheduling.v1alpha3.CompositeDisruptionMode
 all .AllCompositeDisruptionMode
 single .SingleCompositeDisruptionMode

scheduling.v1alpha3.CompositeGangSchedulingPolicy
 minGroupCount! int32

scheduling.v1alpha3.CompositePodGroupSchedulingConstraints
 topology [].TopologyConstraint

scheduling.v1alpha3.CompositePodGroupSchedulingPolicy
 basic .CompositeBasicSchedulingPolicy
 gang .CompositeGangSchedulingPolicy

scheduling.v1alpha3.CompositePodGroupSpec
 disruptionMode .CompositeDisruptionMode
 parentCompositePodGroupName string
 preemptionPolicy string
 priority int32
 priorityClassName string
 schedulingConstraints .CompositePodGroupSchedulingConstraints
 schedulingPolicy! .CompositePodGroupSchedulingPolicy
 workloadRef! .WorkloadReference

scheduling.v1alpha3.CompositePodGroupTemplate <core.v1.PodOS
 compositePodGroupTemplates [].CompositePodGroupTemplate
 disruptionMode .CompositeDisruptionMode
 podGroupTemplates [].PodGroupTemplate
 preemptionPolicy string
 priority int32
 priorityClassName string
 schedulingConstraints .CompositePodGroupSchedulingConstraints
 schedulingPolicy! .CompositePodGroupSchedulingPolicy

scheduling.v1alpha3.DisruptionMode
 all .AllDisruptionMode
 single .SingleDisruptionMode

scheduling.v1alpha3.GangSchedulingPolicy
 minCount! int32

scheduling.v1alpha3.PodGroupResourceClaim <core.v1.PodResourceClaim

scheduling.v1alpha3.PodGroupSchedulingConstraints <scheduling.v1alpha3.CompositePodGroupSchedulingConstraints

scheduling.v1alpha3.PodGroupSchedulingPolicy
 basic .BasicSchedulingPolicy
 gang .GangSchedulingPolicy

scheduling.v1alpha3.PodGroupSpec
 disruptionMode .DisruptionMode
 parentCompositePodGroupName string
 preemptionPolicy string
 priority int32
 priorityClassName string
 resourceClaims [].PodGroupResourceClaim
 schedulingConstraints .PodGroupSchedulingConstraints
 schedulingPolicy! .PodGroupSchedulingPolicy
 workloadRef .WorkloadReference

scheduling.v1alpha3.PodGroupTemplate <core.v1.PodOS
 disruptionMode .DisruptionMode
 preemptionPolicy string
 priority int32
 priorityClassName string
 resourceClaims [].PodGroupResourceClaim
 schedulingConstraints .PodGroupSchedulingConstraints
 schedulingPolicy! .PodGroupSchedulingPolicy

scheduling.v1alpha3.SingleCompositeDisruptionMode

scheduling.v1alpha3.SingleDisruptionMode

scheduling.v1alpha3.TopologyConstraint
 key! string

scheduling.v1alpha3.TypedLocalObjectReference <core.v1.TypedLocalObjectReference

scheduling.v1alpha3.WorkloadPodGroupAllDisruptionMode

scheduling.v1alpha3.WorkloadPodGroupBasicSchedulingPolicy

scheduling.v1alpha3.WorkloadPodGroupDisruptionMode
 all .WorkloadPodGroupAllDisruptionMode
 single .WorkloadPodGroupSingleDisruptionMode

scheduling.v1alpha3.WorkloadPodGroupGangSchedulingPolicy
 minCount int32

scheduling.v1alpha3.WorkloadPodGroupResourceClaim <core.v1.PodResourceClaim

scheduling.v1alpha3.WorkloadPodGroupSchedulingConstraints <scheduling.v1alpha3.CompositePodGroupSchedulingConstraints

scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy
 basic .WorkloadPodGroupBasicSchedulingPolicy
 gang .WorkloadPodGroupGangSchedulingPolicy

scheduling.v1alpha3.WorkloadPodGroupSingleDisruptionMode

scheduling.v1alpha3.WorkloadReference
 templateName! string
 workloadName! string

scheduling.v1alpha3.WorkloadSpec
 compositePodGroupTemplates [].CompositePodGroupTemplate
 controllerRef .TypedLocalObjectReference
 podGroupTemplates [].PodGroupTemplate

scheduling.v1beta1.AllCompositeDisruptionMode

scheduling.v1beta1.AllDisruptionMode

scheduling.v1beta1.BasicSchedulingPolicy

scheduling.v1beta1.CompositeBasicSchedulingPolicy

scheduling.v1beta1.CompositeDisruptionMode <scheduling.v1alpha3.CompositeDisruptionMode

scheduling.v1beta1.CompositeGangSchedulingPolicy <scheduling.v1alpha3.CompositeGangSchedulingPolicy

scheduling.v1beta1.CompositePodGroupSchedulingConstraints <scheduling.v1alpha3.CompositePodGroupSchedulingConstraints

scheduling.v1beta1.CompositePodGroupSchedulingPolicy <scheduling.v1alpha3.CompositePodGroupSchedulingPolicy

scheduling.v1beta1.CompositePodGroupTemplate <scheduling.v1alpha3.CompositePodGroupTemplate

scheduling.v1beta1.DisruptionMode <scheduling.v1alpha3.DisruptionMode

scheduling.v1beta1.GangSchedulingPolicy <scheduling.v1alpha3.GangSchedulingPolicy

scheduling.v1beta1.PodGroupResourceClaim <core.v1.PodResourceClaim

scheduling.v1beta1.PodGroupSchedulingConstraints <scheduling.v1alpha3.CompositePodGroupSchedulingConstraints

scheduling.v1beta1.PodGroupSchedulingPolicy <scheduling.v1alpha3.PodGroupSchedulingPolicy

scheduling.v1beta1.PodGroupSpec <scheduling.v1alpha3.PodGroupSpec

scheduling.v1beta1.PodGroupTemplate <scheduling.v1alpha3.PodGroupTemplate

scheduling.v1beta1.SingleCompositeDisruptionMode

scheduling.v1beta1.SingleDisruptionMode

scheduling.v1beta1.TopologyConstraint <scheduling.v1alpha3.TopologyConstraint

scheduling.v1beta1.TypedLocalObjectReference <core.v1.TypedLocalObjectReference

scheduling.v1beta1.WorkloadReference <scheduling.v1alpha3.WorkloadReference

scheduling.v1beta1.WorkloadSpec <scheduling.v1alpha3.WorkloadSpec

storage.v1.CSIDriverSpec
 attachRequired boolean
 fsGroupPolicy string
 nodeAllocatableUpdatePeriodSeconds int64
 podInfoOnMount boolean
 preventPodSchedulingIfMissing boolean
 requiresRepublish boolean
 seLinuxMount boolean
 serviceAccountTokenInSecrets boolean
 storageCapacity boolean
 tokenRequests [].TokenRequest
 volumeLifecycleModes []string

storage.v1.CSINodeDriver <core.v1.PodOS
 allocatable .VolumeNodeResources
 nodeID! string
 topologyKeys []string

storage.v1.CSINodeSpec
 drivers! [].CSINodeDriver

storage.v1.TokenRequest
 audience! string
 expirationSeconds int64

storage.v1.VolumeAttachmentSource
 inlineVolumeSpec core.v1.PersistentVolumeSpec
 persistentVolumeName string

storage.v1.VolumeAttachmentSpec
 attacher! string
 nodeName! string
 source! .VolumeAttachmentSource

storage.v1.VolumeNodeResources
 count int32

storagemigration.v1.StorageVersionMigrationSpec
 resource! meta.v1.GroupResource

storagemigration.v1beta1.StorageVersionMigrationSpec <storagemigration.v1.StorageVersionMigrationSpec
"""
