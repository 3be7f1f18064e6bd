package keyfuncs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/keyfuncs"
)

func TestPayloadHash(t *testing.T) {
	seen := map[string]dedupe.Payload{}
	for _, payload := range []dedupe.Payload{
		{},
		{Target: "ab"},
		{Target: "a", ContentType: "b"},
		{Target: "a", Body: []byte("b")},
		{ContentType: "ab"},
		{ContentType: "a", Body: []byte("b")},
		{Body: []byte("ab")},
		{Target: "POST /orders", ContentType: "application/json", Body: []byte(`{"a":1}`)},
		{Target: "POST /orders?a=1", ContentType: "application/json", Body: []byte(`{"a":1}`)},
		{Target: "POST /orders", ContentType: "text/plain", Body: []byte(`{"a":1}`)},
		{Target: "POST /orders", ContentType: "application/json", Body: []byte(`{"a":1} `)},
	} {
		key, err := keyfuncs.PayloadHash(request{payload: payload})
		if err != nil || len(key) != 64 {
			t.Fatalf("%q: got %q, %v", payload, key, err)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have one key", payload, other)
		}
		seen[key] = payload

		payload.Body = append([]byte{}, payload.Body...)
		if again, _ := keyfuncs.PayloadHash(request{payload: payload}); again != key {
			t.Errorf("%q: got %s, then %s", payload, key, again)
		}
	}
}

func TestPayloadHashPassesErrors(t *testing.T) {
	key, err := keyfuncs.PayloadHash(request{err: dedupe.ErrPayloadTooLarge})
	if key != "" || !errors.Is(err, dedupe.ErrPayloadTooLarge) {
		t.Errorf("got %q, %v", key, err)
	}
}

func ExamplePayloadHash() {
	order := dedupe.Payload{
		Target:      "POST /orders",
		ContentType: "application/json",
		Body:        []byte(`{"item":7}`),
	}
	first, _ := keyfuncs.PayloadHash(request{payload: order})
	second, _ := keyfuncs.PayloadHash(request{payload: order})
	order.Body = []byte(`{"item":8}`)
	other, _ := keyfuncs.PayloadHash(request{payload: order})

	fmt.Println(len(first), first == second, first == other)
	// Output: 64 true false
}
