package httpmw_test

import (
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/dedupe"
)

// streams are ways to answer with so many bytes.
var streams = map[string]func(http.ResponseWriter, int64){
	"written": func(w http.ResponseWriter, size int64) {
		chunk := make([]byte, 32<<10)
		for size > 0 {
			n, err := w.Write(chunk[:min(size, int64(len(chunk)))])
			if err != nil {
				panic(err)
			}
			size -= int64(n)
		}
	},
	"flushed": func(w http.ResponseWriter, size int64) {
		chunk := make([]byte, 256<<10)
		for size > 0 {
			n, err := w.Write(chunk[:min(size, int64(len(chunk)))])
			if err != nil {
				panic(err)
			}
			flush(w)
			size -= int64(n)
		}
	},
	"copied": func(w http.ResponseWriter, size int64) {
		if n, err := io.Copy(w, io.LimitReader(zeros{}, size)); n != size || err != nil {
			panic(err)
		}
	},
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An answer of a gibibyte costs no more memory than one of a few mebibytes: what is held back is let go
// when it turns out to be too large.
func TestMemoryOfAStream(t *testing.T) {
	const bound = 16 << 20
	size := int64(1 << 30)
	if testing.Short() || raceEnabled {
		size = 64 << 20
	}
	for protocol, start := range protocols {
		for name, stream := range streams {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				size := size
				if protocol != "HTTP/1.1" { // slower, and the same code of ours
					size = min(size, 128<<20)
				}
				var runs atomic.Int32
				server := start(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
					runs.Add(1)
					stream(w, size)
				}))
				before := heap()
				response, err := server.Client().Do(newPost(t.Context(), t, server.URL+"/pay", "k"))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				var read int64
				var peak uint64
				chunk := make([]byte, 256<<10)
				for next := size / 32; err == nil; {
					var n int
					n, err = response.Body.Read(chunk)
					if read += int64(n); read >= next {
						peak = max(peak, inUse())
						next += size / 32
					}
				}
				if err != io.EOF || read != size {
					t.Errorf("got %d bytes of %d, %v", read, size, err)
				}
				if peak > before+bound {
					t.Errorf("the heap has grown from %d to %d bytes", before, peak)
				}
				post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
				if runs.Load() != 1 {
					t.Errorf("%d runs", runs.Load())
				}
			})
		}
	}
}

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	return inUse()
}

func inUse() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}

// What is over the limit reaches the client while the handler runs, flushed or not.
func TestLargeAnswerArrivesEarly(t *testing.T) {
	for protocol, start := range protocols {
		t.Run(protocol, func(t *testing.T) {
			proceed := make(chan struct{})
			server := start(t, onceOver(t, func(w http.ResponseWriter, _ *http.Request) {
				streams["written"](w, 2<<20)
				<-proceed
			}))
			response, err := server.Client().Do(newPost(t.Context(), t, server.URL+"/pay", "k"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if n, err := io.CopyN(io.Discard, response.Body, 1<<20+1); err != nil {
				t.Errorf("got %d bytes, %v", n, err)
			}
			close(proceed)
			if n, err := io.Copy(io.Discard, response.Body); n != 1<<20-1 || err != nil {
				t.Errorf("got %d bytes more, %v", n, err)
			}
			post(t, server).checkRefused(t, dedupe.AnswerUnavailable)
		})
	}
}
