package dedupe

import "context"

// ContextWithKey returns a context in which a client's call is sent with this idempotency key, over
// any protocol: httpmw.Transport and grpcmw.UnaryClientInterceptor send it instead of making one. A
// call that has to survive a crash needs it: make the key, store it with what is to be done, then
// call; after the crash, call again with the key that was stored.
//
// It is the key of one call. Two calls with it are taken for a call and its repeat. An empty key is
// sent by nobody: the call fails, because a key that got lost is not to be replaced by a new one.
func ContextWithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, clientKey{}, key)
}

// KeyFrom returns the key of [ContextWithKey]. It is for clients: what a guard took out of a request
// is not there.
func KeyFrom(ctx context.Context) (key string, ok bool) {
	key, ok = ctx.Value(clientKey{}).(string)
	return key, ok
}

type clientKey struct{}
