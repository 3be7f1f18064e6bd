package dedupe

import (
	"errors"
	"fmt"
	"reflect"
)

// Guard keeps requests with the same key from running at the same time ([Serialize]) or more than
// once ([Once]). Give it to an adapter's middleware, or call [Guard.Run] or [Fetch]. A Guard is
// safe for concurrent use; one is built at start-up and shared by all requests.
type Guard struct {
	settings

	kind   kind
	name   string
	store  Store
	caller KeyFunc
	key    KeyFunc

	holders   holders
	abandoned abandoned
}

type kind uint8

const (
	kindSerialize kind = iota
	kindOnce
)

// Serialize returns a guard under which requests with the same key run one at a time, over all
// replicas that share store. name is the lock domain: account 7 and order 7 are different locks
// because their domains are, while all guards with one name and key exclude each other, whatever
// their routes.
//
// key may be nil if the guard is only used by [Guard.Run].
//
// The error names every bad argument and option, its value and its bound.
func Serialize(store Store, name string, key KeyFunc, options ...Option) (*Guard, error) {
	g := &Guard{kind: kindSerialize, name: name, store: store, key: key}
	var found []error
	if name == "" {
		found = append(found, errors.New(`the name is ""; give the lock domain, such as "account"`))
	}
	return g.build("Serialize", found, options)
}

// Once returns a guard under which a request runs once: the first with a key runs, and its answer
// is kept and given again to every repeat within the retention. A key counts for one caller and
// one operation; caller tells them apart. To share answers among all callers, write
// keyfuncs.Anyone.
//
// key may be nil if the guard is only used by [Guard.Run] and [Fetch].
//
// The error names every bad argument and option, its value and its bound.
func Once(store Store, caller, key KeyFunc, options ...Option) (*Guard, error) {
	g := &Guard{kind: kindOnce, name: "once", store: store, caller: caller, key: key}
	var found []error
	if caller == nil {
		found = append(found, errors.New("the caller is nil; give a key function that tells callers apart, or keyfuncs.Anyone"))
	}
	return g.build("Once", found, options)
}

func (g *Guard) build(constructor string, found []error, options []Option) (*Guard, error) {
	switch t := reflect.TypeOf(g.store); {
	case t == nil, t.Kind() == reflect.Pointer && reflect.ValueOf(g.store).IsNil():
		found = append(found, errors.New("the store is nil; give one, such as redisstore.New(client)"))
	case !reflect.ValueOf(g.store).Comparable(): // also what an interface in it holds
		found = append(found, fmt.Errorf("the store is a %v, which cannot be compared; give a pointer to it", t))
	}
	g.settings = defaults()
	for _, option := range options {
		if option == nil {
			found = append(found, errOptionNil)
			continue
		}
		option(&g.settings)
	}
	if !g.maxHoldGiven {
		g.maxHold = max(g.maxHold, g.lease)
	}
	found = append(found, g.problems(g.kind)...)
	if len(found) > 0 {
		for i, err := range found {
			found[i] = fmt.Errorf("dedupe.%s: %w", constructor, err)
		}
		return nil, errors.Join(found...)
	}
	return g, nil
}

// KeepsAnswers reports whether the guard is a Once: for adapters, where there is no answer to keep.
func (g *Guard) KeepsAnswers() bool { return g.kind == kindOnce }

// Name returns the lock domain of a Serialize, and "once" for a Once.
func (g *Guard) Name() string { return g.name }

// digest names the record of one key. For a Once it is bound to caller and operation.
func (g *Guard) digest(caller, operation, key string) Digest {
	if g.kind == kindSerialize {
		return digest("interlock", "serialize", g.name, "", key)
	}
	return digest("interlock", "once", operation, caller, key)
}

// sameDomain reports whether equal keys of both guards are the same record.
func (g *Guard) sameDomain(other *Guard) bool {
	return g.kind == other.kind && g.name == other.name && g.store == other.store
}
