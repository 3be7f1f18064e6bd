package redisstore

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1
	_ "embed"
	"encoding/hex"
	"strings"
)

// script is one operation on one record. Every script touches one key only, so that it also runs
// while a cluster migrates the key's slot, and may run twice with the same result, because clients
// send a command again when its reply is lost.
type script struct {
	name   string
	source string
	sha1   string
}

var (
	//go:embed script/claim.lua
	claimSource string
	//go:embed script/extend.lua
	extendSource string
	//go:embed script/complete.lua
	completeSource string
	//go:embed script/release.lua
	releaseSource string
	//go:embed script/line.lua
	lineSource string

	claimScript    = newScript("claim", claimSource)
	extendScript   = newScript("extend", extendSource)
	completeScript = newScript("complete", completeSource)
	releaseScript  = newScript("release", releaseSource)
)

// newScript puts line.lua into the scripts that need it: after what is done without it, because Lua
// would make its functions for each call.
func newScript(name, source string) *script {
	source = strings.Replace(source, "--[[ line.lua ]]\n", lineSource, 1)
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	return &script{name: name, source: source, sha1: hex.EncodeToString(sum[:])}
}
