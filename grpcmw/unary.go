package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/interlock-go/interlock/dedupe"
)

// UnaryServerInterceptor returns an interceptor that takes each call of a method through its guards
// before the handler runs. It has every default of [Config], and panics on a name that cannot be a
// method's and on a nil guard: whoever built that one did not look at its error.
func UnaryServerInterceptor(methods Methods) grpc.UnaryServerInterceptor {
	return must(Config{}.Unary(methods))
}

// Unary is [UnaryServerInterceptor] with the configuration. The error names each bad field, method
// and guard. A Once for a method that is known to be a stream is one: it would never be asked.
func (c Config) Unary(methods Methods) (grpc.UnaryServerInterceptor, error) {
	i, err := c.build(methods, func(guard *dedupe.Guard, m *method) string {
		if m != nil && m.streaming() && guard.KeepsAnswers() {
			return onceOnStream
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	return i.unary, nil
}

func (i *interceptor) unary(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	guards := i.guarded.guards(info.FullMethod)
	if len(guards) == 0 {
		return handler(ctx, message)
	}
	c := &call{
		request:     request{ctx: ctx, config: &i.config, method: i.methods.find(info.FullMethod), message: message},
		interceptor: i,
		handler:     handler,
	}
	if err := dedupe.Do(ctx, guards, c); err != nil {
		disown(ctx, info.FullMethod)
		return nil, i.refuse(err, func(trailer metadata.MD) { _ = grpc.SetTrailer(ctx, trailer) })
	}
	return c.response, c.err
}

// call is one unary call on its way through the guards.
type call struct {
	request

	interceptor *interceptor
	handler     grpc.UnaryHandler
	recording   *recording // nil unless a guard wants the answer

	response any
	err      error
}

func (c *call) Invoke(ctx context.Context) {
	if c.recording != nil {
		ctx = c.recording.context(ctx)
	}
	c.response, c.err = c.handler(ctx, c.message)
}

func (c *call) Record() {
	if c.recording == nil {
		c.recording = newRecording(c.ctx, c.method.name, c.config.KeepMetadata)
	}
}

func (c *call) Answer(keep bool) ([]byte, dedupe.Verdict) {
	s := statusOf(c.err)
	switch {
	case c.err != nil && (s.Code() == codes.OK || c.recording.disowned.Load()):
		return nil, dedupe.VerdictRelease
	case !keep && !c.config.Keep(s.Code()):
		return nil, dedupe.VerdictRelease
	}
	a, ok := c.interceptor.answer(c.response, s)
	if !ok {
		return nil, dedupe.VerdictTombstone
	}
	a.header, a.trailer = c.recording.metadata()
	return a.encode(), dedupe.VerdictKeep
}

func (c *call) Replay(data []byte) error {
	a, err := decodeAnswer(data)
	if err != nil {
		return err
	}
	response, failure, err := c.interceptor.restore(c.method, a)
	if err != nil {
		return err
	}
	if stream := c.stream(); stream != nil {
		// A header that was sent already is somebody else's doing; the answer counts for more.
		_ = stream.SetHeader(metadata.Join(a.header, metadata.Pairs(replayedHeader, "true")))
		_ = stream.SetTrailer(a.trailer)
	}
	c.response, c.err = response, failure
	return nil
}

// stream is where metadata goes: through the recording if a guard further out keeps the replay as
// its own answer.
func (c *call) stream() grpc.ServerTransportStream {
	if c.recording != nil && c.recording.stream != nil {
		return c.recording.stream
	}
	return grpc.ServerTransportStreamFromContext(c.ctx)
}
