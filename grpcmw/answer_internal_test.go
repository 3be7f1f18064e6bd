package grpcmw

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

var answers = map[string]answer{
	"nothing":  {kind: kindNothing},
	"empty":    {kind: kindResponse, name: "google.protobuf.StringValue"},
	"response": {kind: kindResponse, name: "google.protobuf.StringValue", body: []byte("\x0a\x01a")},
	"metadata": {
		kind: kindResponse, name: "google.protobuf.StringValue", body: []byte("\x0a\x01a"),
		header:  metadata.MD{"a": {"1", "", "3"}, "b-bin": {"\x00\xff"}},
		trailer: metadata.MD{"a": {"4"}},
	},
	"status": {kind: kindStatus, body: []byte("\x08\x05\x12\x02no")},
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, want := range answers {
		got, err := decodeAnswer(want.encode())
		if err != nil || !sameAnswer(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
		for range 10 {
			if !bytes.Equal(want.encode(), got.encode()) {
				t.Errorf("%s: the encoding varies", name)
			}
		}
	}
}

func sameAnswer(a, b answer) bool {
	return a.kind == b.kind && a.name == b.name && bytes.Equal(a.body, b.body) &&
		maps.EqualFunc(a.header, b.header, slices.Equal) && maps.EqualFunc(a.trailer, b.trailer, slices.Equal)
}

// The layout is what other versions read: it changes only with the version.
func TestAnswerLayout(t *testing.T) {
	t.Parallel()
	a := answer{
		kind: kindResponse, name: "b.R", body: []byte("\x08\x07"),
		header: metadata.MD{"x": {"1"}}, trailer: metadata.MD{"y": {""}},
	}
	const want = "\x01\x01" + "\x0a\x03b.R" + "\x12\x04\x01x\x011" + "\x1a\x03\x01y\x00" + "\x22\x02\x08\x07"
	if got := a.encode(); string(got) != want {
		t.Errorf("got %q", got)
	}
}

func TestDamagedAnswer(t *testing.T) {
	t.Parallel()
	const body = "\x22\x00"
	for name, data := range map[string]string{
		"empty":               "",
		"version only":        "\x01",
		"newer version":       "\x02\x01" + body,
		"unknown kind":        "\x01\x03" + body,
		"no body":             "\x01\x01\x0a\x03b.R",
		"more than the body":  "\x01\x01" + body + body,
		"unknown field":       "\x01\x01\x2a\x00" + body,
		"field of other type": "\x01\x01\x08\x07" + body,
		"body of other type":  "\x01\x01\x20\x00",
		"body too short":      "\x01\x01\x22\x02a",
		"bad tag":             "\x01\x01\xff",
		"name of metadata":    "\x01\x01\x12\x01\x02" + body,
		"no value":            "\x01\x01\x12\x02\x01x" + body,
		"two values":          "\x01\x01\x12\x06\x01x\x011\x011" + body,
	} {
		if a, err := decodeAnswer([]byte(data)); !errors.Is(err, errAnswer) {
			t.Errorf("%s: got %+v, %v", name, a, err)
		}
	}
}

// What can be decoded need not make sense.
func TestRestoreOfNonsense(t *testing.T) {
	t.Parallel()
	i, err := Config{}.build(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	okay, _ := proto.Marshal(status.New(codes.OK, "fine").Proto())
	for name, a := range map[string]answer{
		"status that is OK":  {kind: kindStatus, body: okay},
		"empty status":       {kind: kindStatus},
		"damaged status":     {kind: kindStatus, body: []byte("\x12\xff")},
		"unknown type":       {kind: kindResponse, name: "nobody.Knows"},
		"no type":            {kind: kindResponse},
		"not a type's name":  {kind: kindResponse, name: "\xff/"},
		"not a message":      {kind: kindResponse, name: "google.protobuf.NullValue"},
		"damaged response":   {kind: kindResponse, name: "google.protobuf.StringValue", body: []byte("\x0a\xff")},
		"response not UTF-8": {kind: kindResponse, name: "google.protobuf.StringValue", body: []byte("\x0a\x01\xff")},
	} {
		response, failure, err := i.restore(findMethod("/elsewhere.Service/Method"), a)
		if err == nil || response != nil || failure != nil {
			t.Errorf("%s: got %v, %v, %v", name, response, failure, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		f.Add(a.encode())
	}
	f.Add([]byte(nil))
	i, err := Config{}.build(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	method := findMethod("/elsewhere.Service/Method")
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := decodeAnswer(data)
		if err != nil {
			if !reflect.DeepEqual(a, answer{}) {
				t.Fatalf("%+v beside an error", a)
			}
			return
		}
		again, err := decodeAnswer(a.encode())
		if err != nil || !sameAnswer(a, again) {
			t.Fatalf("got %+v, %v; want %+v", again, err, a)
		}
		response, failure, err := i.restore(method, a)
		switch {
		case err != nil:
			if response != nil || failure != nil {
				t.Fatalf("%v, %v beside an error", response, failure)
			}
		case a.kind == kindStatus:
			if failure == nil || status.Code(failure) == codes.OK {
				t.Fatalf("a status without an error: %v", failure)
			}
		case a.kind == kindResponse:
			kept, ok := i.answer(response, status.New(codes.OK, ""))
			if !ok {
				t.Fatalf("%v cannot be kept again", response)
			}
			twice, _, err := i.restore(method, kept)
			if err != nil || !proto.Equal(twice.(proto.Message), response.(proto.Message)) {
				t.Fatalf("got %v, %v; want %v", twice, err, response)
			}
		}
	})
}

var _ = wrapperspb.String // registers the type of the answers above
