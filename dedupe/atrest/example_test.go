package atrest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/interlock-go/interlock/dedupe"
	"github.com/interlock-go/interlock/dedupe/atrest"
	"github.com/interlock-go/interlock/dedupe/memstore"
	"github.com/interlock-go/interlock/keyfuncs"
)

// newSecret stands for a key management service, or for `openssl rand -base64 32` in an environment
// variable that is decoded at start-up.
func newSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // documented never to fail
	return secret
}

// What a Once keeps is compressed and sealed; those who repeat a request do not notice.
func Example() {
	compress, err := atrest.Compress(1 << 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	seal, err := atrest.Seal([]atrest.Key{{ID: "2026-09", Secret: newSecret()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	codec, err := atrest.Chain(compress, seal)
	if err != nil {
		fmt.Println(err)
		return
	}
	once, err := dedupe.Once(memstore.New(), keyfuncs.Anyone, nil, dedupe.WithCodec(codec))
	if err != nil {
		fmt.Println(err)
		return
	}

	for range 2 {
		balance, err := dedupe.Fetch(context.Background(), once, "account 7", func(context.Context) (int, error) {
			fmt.Println("computing")
			return 700, nil
		})
		fmt.Println(balance, err)
	}

	// Output:
	// computing
	// 700 <nil>
	// 700 <nil>
}

// A sealed answer opens for the record that it was kept for, and for no other.
func ExampleSeal() {
	codec, err := atrest.Seal([]atrest.Key{{ID: "2026-09", Secret: newSecret()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	alice, mallory := dedupe.Digest{1}, dedupe.Digest{2}
	kept, _ := codec.Encode(alice, 1, []byte("balance 700"))
	fmt.Println("readable in the store:", bytes.Contains(kept, []byte("balance")))

	answer, err := codec.Decode(alice, kept)
	fmt.Printf("%s, %v\n", answer, err)
	_, err = codec.Decode(mallory, kept)
	fmt.Println("refused:", errors.Is(err, dedupe.ErrRecordUnreadable))

	// Output:
	// readable in the store: false
	// balance 700, <nil>
	// refused: true
}

// A new key is deployed at the end of the ring first, so that every process can open what it seals;
// then it moves to the front; and when the retention has passed, the old one goes.
func ExampleSeal_rotation() {
	june := atrest.Key{ID: "2026-06", Secret: newSecret()}
	september := atrest.Key{ID: "2026-09", Secret: newSecret()}

	before, _ := atrest.Seal([]atrest.Key{june})
	announced, _ := atrest.Seal([]atrest.Key{june, september})
	rotated, _ := atrest.Seal([]atrest.Key{september, june})
	after, _ := atrest.Seal([]atrest.Key{september})

	record := dedupe.Digest{1}
	old, _ := before.Encode(record, 1, []byte("kept in June"))
	recent, _ := rotated.Encode(record, 2, []byte("kept in September"))
	open := func(step string, codec dedupe.Codec, kept []byte) {
		answer, err := codec.Decode(record, kept)
		fmt.Printf("%s: %q %v\n", step, answer, err)
	}
	open("announced", announced, recent)
	open("rotated", rotated, old)
	open("after", after, recent)
	open("after", after, old)

	// Output:
	// announced: "kept in September" <nil>
	// rotated: "kept in June" <nil>
	// after: "kept in September" <nil>
	// after: "" atrest: dedupe: record is unreadable: it is sealed with the key "2026-06", which is not in the ring
}

// Sealing is turned on while the service runs: first every process learns to open what is sealed, then
// they begin to seal. Answers from before are accepted until the last of them has expired.
func ExampleWithUnsealed() {
	keys := []atrest.Key{{ID: "2026-09", Secret: newSecret()}}
	const rollout, retention = time.Hour, 24 * time.Hour

	first, _ := atrest.Seal(keys, atrest.WithoutSealing())
	second, _ := atrest.Seal(keys, atrest.WithUnsealed(time.Now().Add(rollout+retention)))
	strict, _ := atrest.Seal(keys) // what the second is like when that time has come

	record := dedupe.Digest{1}
	before, _ := first.Encode(record, 1, []byte("balance 700"))
	fmt.Printf("kept by the first as %q\n", before)
	answer, err := second.Decode(record, before)
	fmt.Printf("read by the second as %q, %v\n", answer, err)
	_, err = strict.Decode(record, before)
	fmt.Println(err)

	// Output:
	// kept by the first as "balance 700"
	// read by the second as "balance 700", <nil>
	// atrest: dedupe: record is unreadable: it is not sealed, and unsealed answers are not accepted; see atrest.WithUnsealed
}

// Compression is turned on by letting every process read what is compressed, and then compressing.
func ExampleCompress() {
	reading, _ := atrest.Compress(math.MaxInt)
	compressing, _ := atrest.Compress(1 << 10)

	record := dedupe.Digest{1}
	list := []byte(strings.Repeat(`{"status":"booked"}`, 1000))
	kept, _ := compressing.Encode(record, 1, list)
	fmt.Println("smaller:", len(kept) < len(list)/10)
	answer, err := reading.Decode(record, kept)
	fmt.Println("the same:", bytes.Equal(answer, list), err)

	short, _ := compressing.Encode(record, 1, []byte("balance 700"))
	fmt.Printf("%s\n", short)

	// Output:
	// smaller: true
	// the same: true <nil>
	// balance 700
}
