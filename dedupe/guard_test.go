package dedupe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/memstore"
)

// byValue is a store that cannot be compared with ==, which guards have to do.
type byValue struct {
	dedupe.Store

	_ []int
}

func TestConstructorsNameBadArguments(t *testing.T) {
	store := memstore.New()
	for _, test := range []struct {
		name  string
		build func() (*dedupe.Guard, error)
		want  []string
	}{
		{
			"Serialize without a store or name",
			func() (*dedupe.Guard, error) { return dedupe.Serialize(nil, "", param("key")) },
			[]string{"dedupe.Serialize: the store is nil", `dedupe.Serialize: the name is ""`},
		},
		{
			"Once without a store or caller",
			func() (*dedupe.Guard, error) { return dedupe.Once(nil, nil, param("key")) },
			[]string{"dedupe.Once: the store is nil", "dedupe.Once: the caller is nil"},
		},
		{
			"a store that cannot be compared",
			func() (*dedupe.Guard, error) { return dedupe.Serialize(byValue{Store: store}, "account", nil) },
			[]string{"the store is a dedupe_test.byValue, which cannot be compared"},
		},
		{
			"nil options",
			func() (*dedupe.Guard, error) {
				return dedupe.Once(store, anyCaller, nil, nil, dedupe.WithWait(time.Second), nil)
			},
			[]string{"an option is nil", "an option is nil"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			guard, err := test.build()
			checkProblems(t, guard, err, test.want...)
		})
	}
}

// checkProblems checks that err has a line for each of want, in any order, and no other.
func checkProblems(t *testing.T, guard *dedupe.Guard, err error, want ...string) {
	t.Helper()
	if guard != nil || err == nil {
		t.Fatalf("got a guard (%t) and the error %v, want an error alone", guard != nil, err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("got %d problems, want %d:\n%v", len(lines), len(want), err)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q:\n%v", text, err)
		}
	}
}

func TestName(t *testing.T) {
	store := memstore.New()
	if got := inDomain(t, store, "order").Name(); got != "order" {
		t.Errorf("the name of a Serialize is %q, want its domain", got)
	}
	if got := once(t, store).Name(); got != "once" {
		t.Errorf(`the name of a Once is %q, want "once"`, got)
	}
}

func TestGuardWithoutKeyFunctionTakesNoRequests(t *testing.T) {
	guard, err := dedupe.Serialize(memstore.New(), "account", nil, dedupe.WithOptionalKey())
	if err != nil {
		t.Fatal(err)
	}
	r := ask("7")
	refusal := refused(t, r.through(guard), dedupe.KeyMissing)
	if r.ran != 0 || !strings.Contains(refusal.Error(), "without a key function") {
		t.Errorf("the handler ran %d times, and the refusal is %q", r.ran, refusal)
	}
	if err := guard.Run(t.Context(), "7", func(context.Context) error { return nil }); err != nil {
		t.Errorf("Run needs no key function, and returned %v", err)
	}
}

// What excludes what: kind, domain and store have to be the same.
func TestDomains(t *testing.T) {
	store, other := memstore.New(), memstore.New()
	held := serialize(t, store)
	for _, test := range []struct {
		name  string
		guard *dedupe.Guard
		want  bool
	}{
		{"another guard of the domain", serialize(t, store), true},
		{"another domain", inDomain(t, store, "order"), false},
		{"another store", serialize(t, other), false},
		{"another kind", once(t, store), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			outer := ask("7").doing(func(context.Context) {
				inner := ask("7")
				err := inner.through(test.guard)
				if test.want {
					refused(t, err, dedupe.Locked)
				} else {
					inner.proceeded(t, err)
				}
			})
			outer.proceeded(t, outer.through(held))
		})
	}
}

// A nil pointer in an interface is a nil store that does not look like one.
func TestTypedNilStore(t *testing.T) {
	guard, err := dedupe.Serialize((*memstore.Store)(nil), "account", nil)
	checkProblems(t, guard, err, "dedupe.Serialize: the store is nil")
}
