package grpcmw

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// recording is what is noted while a handler runs whose answer is to be kept.
type recording struct {
	method   string
	outer    *recording       // of an interceptor further out, or nil
	stream   *recordingStream // nil unless metadata is kept
	disowned atomic.Bool      // the handler did not run
}

func newRecording(ctx context.Context, method string, kept []string) *recording {
	r := &recording{method: method, outer: recordingOf(ctx)}
	under := grpc.ServerTransportStreamFromContext(ctx)
	if under != nil && len(kept) > 0 {
		r.stream = &recordingStream{ServerTransportStream: under, kept: kept}
	}
	return r
}

type recordingKey struct{}

// context returns ctx for the handler.
func (r *recording) context(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, recordingKey{}, r)
	if r.stream != nil {
		ctx = grpc.NewContextWithServerTransportStream(ctx, r.stream)
	}
	return ctx
}

func recordingOf(ctx context.Context) *recording {
	r, _ := ctx.Value(recordingKey{}).(*recording)
	return r
}

// disown is called by an interceptor whose guards turned the request away. What those further out
// get then is not the handler's answer: they do not keep it, as if all guards were in one
// interceptor. (A handler that calls another method has run.)
func disown(ctx context.Context, method string) {
	for r := recordingOf(ctx); r != nil && r.method == method; r = r.outer {
		r.disowned.Store(true)
	}
}

func (r *recording) metadata() (header, trailer metadata.MD) {
	if r.stream == nil {
		return nil, nil
	}
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	return r.stream.header, r.stream.trailer
}

// recordingStream notes the metadata that is to be kept. All of it goes through at once: gRPC holds
// it back until the answer, unless the handler asks to have it sent.
type recordingStream struct {
	grpc.ServerTransportStream

	kept []string

	mu              sync.Mutex
	header, trailer metadata.MD
}

// SetHeader implements grpc.ServerTransportStream.
func (s *recordingStream) SetHeader(md metadata.MD) error {
	return s.note(&s.header, md, s.ServerTransportStream.SetHeader)
}

// SendHeader implements grpc.ServerTransportStream.
func (s *recordingStream) SendHeader(md metadata.MD) error {
	return s.note(&s.header, md, s.ServerTransportStream.SendHeader)
}

// SetTrailer implements grpc.ServerTransportStream.
func (s *recordingStream) SetTrailer(md metadata.MD) error {
	return s.note(&s.trailer, md, s.ServerTransportStream.SetTrailer)
}

// note passes md on, and adds to noted what the client will see of it.
func (s *recordingStream) note(noted *metadata.MD, md metadata.MD, pass func(metadata.MD) error) error {
	if err := pass(md); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.kept {
		if values := md.Get(name); len(values) > 0 {
			if *noted == nil {
				*noted = make(metadata.MD)
			}
			noted.Append(name, values...)
		}
	}
	return nil
}
