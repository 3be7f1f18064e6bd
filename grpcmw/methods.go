package grpcmw

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/dedupe"
)

// Methods says which methods are guarded, and by which guards, the outermost first. A method is
// named in full, as the generated constants do ("/bank.v1.Bank/Withdraw"), or with all of its service
// ("/bank.v1.Bank/*"). Its own name counts before its service's: with no guards it is exempt. Methods
// that are not named pass untouched.
//
// The same Methods may be given to [UnaryServerInterceptor] and [StreamServerInterceptor]; each
// guards the methods of its kind.
type Methods map[string][]*dedupe.Guard

// checkFunc returns what is wrong with a guard for a method, or "". The method is nil for a whole
// service, and has no descriptor if that is not registered.
type checkFunc func(guard *dedupe.Guard, m *method) string

// problems returns an error for each bad name and guard.
func (ms Methods) problems(check checkFunc) []error {
	var found []error
	for _, name := range slices.Sorted(maps.Keys(ms)) {
		service, short, err := split(name)
		if err != nil {
			found = append(found, err)
			continue
		}
		var m *method
		if short != "*" {
			m = findMethod(name)
			if m.descriptor == nil && serviceRegistered(service) {
				found = append(found, fmt.Errorf("grpcmw: %q: the service has no such method", name))
			}
		}
		for i, guard := range ms[name] {
			if guard == nil {
				found = append(found, fmt.Errorf("grpcmw: %q: guard %d is nil; look at the error its constructor returned", name, i+1))
			} else if problem := check(guard, m); problem != "" {
				found = append(found, fmt.Errorf("grpcmw: %q: guard %d %s", name, i+1, problem))
			}
		}
	}
	return found
}

// split takes apart the name of a method or, with the method "*", of a service.
func split(name string) (service, method string, err error) {
	service, method, found := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	switch {
	case !found || name[0] != '/' || service == "" || method == "",
		strings.ContainsAny(service, "* \t\r\n"),
		method != "*" && strings.ContainsAny(method, "*/ \t\r\n"):
		return "", "", fmt.Errorf(`grpcmw: %q is not the name of a method; give one such as "/bank.v1.Bank/Withdraw", or "/bank.v1.Bank/*"`, name)
	default:
		return service, method, nil
	}
}

const onceOnStream = "is a Once, and the method is a stream: there is no single answer to be kept; leave it out"

// guarded finds the guards of a method.
type guarded struct {
	methods  map[string][]*dedupe.Guard // by full name
	services map[string][]*dedupe.Guard // by "/package.Service/"
}

func (ms Methods) index() guarded {
	g := guarded{make(map[string][]*dedupe.Guard), make(map[string][]*dedupe.Guard)}
	for name, guards := range ms {
		if service, all := strings.CutSuffix(name, "*"); all {
			g.services[service] = slices.Clone(guards)
		} else {
			g.methods[name] = slices.Clone(guards)
		}
	}
	return g
}

func (g guarded) guards(method string) []*dedupe.Guard {
	if guards, named := g.methods[method]; named {
		return guards
	}
	return g.services[method[:strings.LastIndexByte(method, '/')+1]]
}

// must is for constructors without an error.
func must[T any](built T, err error) T {
	if err != nil {
		panic(err)
	}
	return built
}
