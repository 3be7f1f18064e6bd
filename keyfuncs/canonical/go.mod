module github.com/interlock-go/interlock/keyfuncs/canonical

go 1.26.0

replace github.com/interlock-go/interlock => ../..

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000
)

require github.com/google/uuid v1.6.0 // indirect
