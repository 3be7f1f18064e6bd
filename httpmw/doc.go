// Package httpmw puts guards in front of net/http handlers.
//
//	mux.Handle("POST /accounts/{id}/withdraw", httpmw.New(once, account)(withdraw))
//
// It takes keys out of requests, renders refusals as problems (RFC 9457), and records the answers
// that a [dedupe.Once] keeps. It decides nothing: that is package dedupe's. [Config] has what can be
// changed.
//
// Under a [dedupe.Serialize] the handler gets the ResponseWriter as it is. Under a Once it gets one
// that holds the answer back until it is saved, and passes it on at once when it turns out to be
// streamed or too large to be kept. Flush, Hijack, ReadFrom and http.ResponseController work as
// before.
//
// Not kept, so that a repeat is told that the request ran and its answer is not there: what was
// flushed, what is over [Config.MaxAnswer], what has trailers, what is not as long as its
// Content-Length said, and what was said on a connection that the handler took over.
//
// Put what belongs to the exchange rather than to the answer outside the guards, and a replay has the
// current request's: CORS, request IDs, and compression. Inside, a repeat gets the encoding that the
// first request has asked for.
//
// A key is held until the handler returns. Put what answers before its handler has returned, such as
// http.TimeoutHandler, outside the guards: inside, the key would be free while the handler still runs.
// A client that sends its request or reads its answer slowly holds the key meanwhile: set the server's
// ReadTimeout and WriteTimeout, or a small [dedupe.WithMaxHold].
package httpmw
