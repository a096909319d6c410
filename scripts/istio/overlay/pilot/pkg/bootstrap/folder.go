package bootstrap

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/log"
)

const every = 200 * time.Millisecond

// ObjectsOfFolder gives istiod the client of Istio's own tests, which holds what the manifests in folder say: one
// object a file, YAML or JSON. Files that change or go are seen within every. Of a folder with a file that cannot be
// read, which may be half written, nothing is taken.
func ObjectsOfFolder(folder string) func(*Server) {
	return func(server *Server) {
		client := kube.NewFakeClient()
		clientset, ok := client.Kube().(*fake.Clientset)
		if !ok {
			panic("Istio's fake client is not Kubernetes' fake client any more")
		}
		// Istiod asks the API server whether a gateway may read the Secrets of its namespace.
		clientset.PrependReactor("create", "subjectaccessreviews", allow)
		mirror := &mirror{folder: folder, objects: clientset.Tracker(), held: map[identity]held{}}
		mirror.update()
		server.kubeClient = client
		go func() {
			for range time.Tick(every) {
				mirror.update()
			}
		}()
	}
}

func allow(clienttesting.Action) (bool, runtime.Object, error) {
	status := authorization.SubjectAccessReviewStatus{Allowed: true}
	return true, &authorization.SubjectAccessReview{Status: status}, nil
}

type identity struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// An object with the bytes that it was read from, which tell whether it has changed.
type held struct {
	bytes  []byte
	object runtime.Object
}

type mirror struct {
	folder  string
	objects clienttesting.ObjectTracker
	held    map[identity]held
}

func (m *mirror) update() {
	found, err := m.read()
	if err != nil {
		log.Warnf("objects: %v", err)
		return
	}
	for id, new := range found {
		old, known := m.held[id]
		if !known {
			m.say("created", id, m.objects.Create(id.resource, new.object, id.namespace))
		} else if !bytes.Equal(old.bytes, new.bytes) {
			m.say("changed", id, m.objects.Update(id.resource, new.object, id.namespace))
		}
	}
	for id := range m.held {
		if _, there := found[id]; !there {
			m.say("removed", id, m.objects.Delete(id.resource, id.namespace, id.name))
		}
	}
	m.held = found
}

func (m *mirror) say(what string, id identity, err error) {
	if err != nil {
		log.Errorf("objects: %s/%s/%s is not %s: %v", id.resource.Resource, id.namespace, id.name, what, err)
		return
	}
	log.Infof("objects: %s/%s/%s %s", id.resource.Resource, id.namespace, id.name, what)
}

func (m *mirror) read() (map[identity]held, error) {
	found := map[identity]held{}
	for _, name := range []string{"istio-system", "default"} {
		m.namespace(found, name)
	}
	files, err := filepath.Glob(filepath.Join(m.folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
		if err != nil {
			return nil, err
		}
		id, err := identify(object, *kind)
		if err != nil {
			return nil, err
		}
		if id.namespace != "" {
			m.namespace(found, id.namespace)
		}
		found[id] = held{content, object}
	}
	return found, nil
}

// A namespace that nothing describes is made, as namespaces of a cluster are there before what is in them.
func (m *mirror) namespace(found map[identity]held, name string) {
	namespace := &core.Namespace{}
	namespace.Name = name
	kind := core.SchemeGroupVersion.WithKind("Namespace")
	if id, err := identify(namespace, kind); err == nil {
		if _, there := found[id]; !there {
			found[id] = held{nil, namespace}
		}
	}
}

func identify(object runtime.Object, kind schema.GroupVersionKind) (identity, error) {
	about, err := meta.Accessor(object)
	if err != nil {
		return identity{}, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return identity{resource, about.GetNamespace(), about.GetName()}, nil
}
