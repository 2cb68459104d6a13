//! Virtual machines, read by reference: a page of them is a read of its own, so that several can be under way at a time and
//! the server collects them in parallel.

use std::sync::Arc;

use futures::{Stream, StreamExt, stream};

use crate::{
    error::{Fault, Result},
    inventory::{build::Listed, request::these_vms},
    reference::Ref,
    retrieve::Size,
    session::Core,
    soap::properties::{Object, Value},
};

/// The pages of these, in their order, so that two reads of the same are equal. `listed` is sorted, as the builder gives it.
pub(super) fn pages<'a>(core: &'a Arc<Core>, listed: &'a [Listed], size: &'a Size) -> impl Stream<Item = Result<Vec<Object>>> + 'a {
    let pages = listed.chunks(core.settings.page).map(move |listed| page(core, listed, size));
    stream::iter(pages).buffered(core.settings.in_flight)
}

async fn page(core: &Arc<Core>, listed: &[Listed], size: &Size) -> Result<Vec<Object>> {
    let mut wanted: Vec<&Ref> = listed.iter().map(|one| &one.vm).collect();
    let mut found = Vec::with_capacity(wanted.len());
    while !wanted.is_empty() {
        let specification = these_vms(wanted.iter().copied());
        let outcome = core
            .retrieve_part(size, &specification, |objects, begins| {
                if begins {
                    found.clear();
                }
                found.extend(objects.into_iter().filter_map(|object| placed(object, listed)));
                true
            })
            .await;
        let Err(error) = outcome else { break };
        // One that went since its folder told of it makes the server refuse all; the others are asked for without it.
        let before = wanted.len();
        if let Fault::NotFound { object: Some(gone) } = error.fault() {
            wanted.retain(|one| *one != gone);
        }
        if wanted.len() == before {
            return Err(error);
        }
        found.clear();
    }
    Ok(found)
}

/// The same with the folder it lies in; nothing if nobody asked for it.
fn placed(mut object: Object, listed: &[Listed]) -> Option<Object> {
    let at = listed.binary_search_by(|one| one.vm.cmp(&object.reference)).ok()?;
    object.properties.push(("parent".to_owned(), Value::Ref(listed[at].folder.clone())));
    Some(object)
}
