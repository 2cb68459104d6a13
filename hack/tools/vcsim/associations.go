package main

import (
	"context"
	"log"

	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/types"
)

// forgetTags takes every tag off an object that goes, as a vCenter does; govmomi's simulator would go on listing it.
func (v *vcenter) forgetTags(ref types.ManagedObjectReference) {
	err := v.withTags(context.Background(), func(ctx context.Context, manager *tags.Manager) error {
		attached, err := manager.ListAttachedTags(ctx, ref)
		if err != nil {
			return err
		}
		for _, tag := range attached {
			if err := manager.DetachTag(ctx, tag, ref); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Printf("tags of %s, which is gone, stay: %v", ref, err)
	}
}
