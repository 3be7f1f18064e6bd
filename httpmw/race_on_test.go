//go:build race

package httpmw_test

// raceEnabled says that everything takes several times as long.
const raceEnabled = true
