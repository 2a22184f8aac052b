// Package webhooks keeps what a project registers as its webhooks, and asks them about new objects.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	patches "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Kinds returns the kinds of a scheme that a webhook validates.
func (s *Server) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range s.scheme.AllKnownTypes() {
		if _, validated := s.hooks[hookPath("validate", kind)]; validated {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// hookPath is where a webhook of a kind is served.
func hookPath(what string, kind schema.GroupVersionKind) string {
	group := strings.ReplaceAll(kind.Group, ".", "-")
	return fmt.Sprintf("/%s-%s-%s-%s", what, group, kind.Version, strings.ToLower(kind.Kind))
}

// Server keeps the webhooks that a project registers, by their paths, and serves nothing.
type Server struct {
	scheme *runtime.Scheme
	hooks  map[string]admission.Handler
}

// NewServer makes a server without webhooks.
func NewServer(scheme *runtime.Scheme) *Server {
	return &Server{scheme: scheme, hooks: map[string]admission.Handler{}}
}

// Manager returns what a project registers its webhooks with.
func (s *Server) Manager() ctrl.Manager {
	manager, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:9"}, ctrl.Options{
		Scheme:        s.scheme,
		WebhookServer: s,
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return alone{}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	return manager
}

// Ask returns an object with its defaults, where they are asked for, and why the webhooks of its kind refuse it.
func (s *Server) Ask(object []byte, kind schema.GroupVersionKind, defaults bool) ([]byte, error) {
	if hook, there := s.hooks[hookPath("mutate", kind)]; there && defaults {
		answer := hook.Handle(context.Background(), request(object, kind))
		if !answer.Allowed {
			return object, errors.New(answer.Result.Message)
		}
		completed, err := patched(object, answer.Patches)
		if err != nil {
			panic(err)
		}
		object = completed
	}
	if hook, there := s.hooks[hookPath("validate", kind)]; there {
		if answer := hook.Handle(context.Background(), request(object, kind)); !answer.Allowed {
			return object, errors.New(answer.Result.Message)
		}
	}
	return object, nil
}

func request(object []byte, kind schema.GroupVersionKind) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Kind:      metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Object:    runtime.RawExtension{Raw: object},
	}}
}

func patched(object []byte, operations []jsonpatch.Operation) ([]byte, error) {
	raw, err := json.Marshal(operations)
	if err != nil || len(operations) == 0 {
		return object, err
	}
	patch, err := patches.DecodePatch(raw)
	if err != nil {
		return object, err
	}
	return patch.Apply(object)
}

func (s *Server) Register(path string, hook http.Handler) {
	if handler, ok := hook.(admission.Handler); ok {
		s.hooks[path] = handler
		return
	}
	if whole, ok := hook.(*admission.Webhook); ok {
		s.hooks[path] = whole.Handler
	}
}

func (s *Server) NeedLeaderElection() bool        { return false }
func (s *Server) Start(context.Context) error     { return nil }
func (s *Server) StartedChecker() healthz.Checker { return healthz.Ping }
func (s *Server) WebhookMux() *http.ServeMux      { return http.NewServeMux() }

var _ webhook.Server = &Server{}

// alone is a cluster in which there is nothing but the object that is asked about.
type alone struct{ client.Client }

func (alone) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("not found")
}

func (alone) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}
