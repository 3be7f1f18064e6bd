// Package atrest has codecs for the answers that a Once keeps: [Seal] encrypts and authenticates them,
// [Compress] makes them smaller, [Chain] does both.
//
//	compress, err := atrest.Compress(1 << 10)
//	seal, err := atrest.Seal([]atrest.Key{{ID: "2026-09", Secret: secret}})
//	codec, err := atrest.Chain(compress, seal)
//	once, err := dedupe.Once(store, caller, key, dedupe.WithCodec(codec))
//
// # What sealing protects
//
// The answers, from whoever reads the store: its administrators, its backups, its network, a stolen
// disk. They see sizes, not contents. And from whoever writes it: an answer that was made up, changed,
// cut short, or moved from another key does not open. It is then refused as unavailable, and the
// handler does not run.
//
// What it does not protect:
//
//   - Against writers of the store: a record can be deleted or altered so that the request runs again, a
//     lease can be taken away, and an earlier answer of the same key, if somebody kept a copy, can be
//     put back. Only who may write the store decides that.
//   - What stands beside the answer: the digests of key and payload, the fence (a time in µs), the
//     ID of the sealing key, and how often, when and how large answers are. Digests are SHA-256
//     without a secret: who can guess a whole key or payload can check the guess.
//   - The memory of the processes, where answers and keys are in the clear.
//
// # Keys
//
// The first key of the ring seals; all of them open. A key is 32 random bytes, and must not seal more
// than 2³² answers ([Seal] says how soon that is). Services and environments that do not share a store
// should not share keys either. To rotate, without refusing an answer:
//
//  1. Deploy the new key at the end of the ring: {old, new}. Every process can now open what it seals.
//  2. Deploy it at the front: {new, old}.
//  3. When the guard's retention has passed since, deploy {new}.
//
// When a key has leaked, go to step 3 at once. What it sealed is then refused, as unavailable: the
// requests ran, and do not run again.
//
// # Turning sealing on and off
//
// A process without the codec cannot read a sealed answer and refuses it. And a process that seals
// refuses an answer that is not sealed: otherwise whoever writes the store would only have to leave
// the seal off. So, for a service that keeps running:
//
//  1. Deploy Seal(keys, WithoutSealing()). Every process can now open what is sealed.
//  2. Deploy Seal(keys, WithUnsealed(until)), where until is the end of this rollout plus the retention.
//     From then on unsealed answers are refused, without another deployment.
//
// Off again: deploy WithUnsealed(until) with time enough for the rollouts, then WithoutSealing(), and
// when the retention has passed since, no codec.
//
// # Formats
//
// What is kept begins with a mark and a version. A version once released stays readable. Errors of
// Decode match [dedupe.ErrRecordUnreadable] and contain neither secrets nor answers.
package atrest
