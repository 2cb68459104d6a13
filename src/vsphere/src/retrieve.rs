//! Reads in pages: all of them, begun anew should the session be lost, and given up should they never end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    error::{Fault, Result},
    fault::cut,
    reference::Ref,
    session::Core,
    settings::Settings,
    soap::{self, Method, arriving::Arriving, properties::Object},
};

impl Core {
    /// Every page of a `RetrievePropertiesEx`; `each` takes the objects of a page and says whether to go on.
    ///
    /// Should the session be lost between two pages, the read begins anew, once: tokens die with their session.
    /// `each` is told when a page begins the read. Returns whether all there is was read.
    pub(crate) async fn retrieve(self: &Arc<Self>, specification: &str, each: impl FnMut(Vec<Object>, bool) -> bool) -> Result<bool> {
        self.retrieve_part(&Size::default(), specification, each).await
    }

    /// The same as a part of a larger read, all parts of which together are held to the limits of one.
    pub(crate) async fn retrieve_part(
        self: &Arc<Self>,
        whole: &Size,
        specification: &str,
        mut each: impl FnMut(Vec<Object>, bool) -> bool,
    ) -> Result<bool> {
        let collector = self.soap_session().await?.content.property_collector.clone();
        // Always a page size: without one the server may page as it likes anyway.
        let page = self.settings.page;
        let arguments = format!("{specification}<options><maxObjects>{page}</maxObjects></options>");
        let first = Method::repeatable("RetrievePropertiesEx", &collector, arguments);
        let mut restarted = false;
        'read: loop {
            let mut counted = (0, 0);
            let (mut page, mut bytes) = self.soap(&first, Arriving::default()).await?;
            let mut begins = true;
            loop {
                // An empty page counts too, or a server could send such for ever.
                let objects = page.objects.len().max(1);
                counted = (counted.0 + objects, counted.1 + bytes);
                let fault = whole.too_large(objects, bytes, &self.settings);
                for (path, fault) in page.objects.iter_mut().flat_map(|object| &mut object.missing) {
                    *path = cut(self.masker.mask(path), 200);
                    *fault = std::mem::take(fault).masked(&self.masker);
                }
                let more = fault.is_none() && each(std::mem::take(&mut page.objects), begins);
                begins = false;
                let token = page.token.take();
                if let Some(fault) = fault {
                    if let Some(token) = token {
                        // The reason to give up is the one to tell.
                        let _ = self.cancel(&collector, &token).await;
                    }
                    return Err(self.error(first.name, Some(&collector), fault));
                }
                let Some(token) = token else { return Ok(true) };
                if !more {
                    return self.cancel(&collector, &token).await.map(|()| false);
                }
                let next = Method {
                    replay: false,
                    ..Method::repeatable("ContinueRetrievePropertiesEx", &collector, soap::element("token", &token))
                };
                (page, bytes) = match self.soap(&next, Arriving::default()).await {
                    Ok(read) => read,
                    Err(error) if *error.fault() == Fault::NotAuthenticated && !restarted => {
                        restarted = true;
                        whole.take_off(counted);
                        continue 'read;
                    }
                    Err(error) => return Err(error),
                };
            }
        }
    }

    /// Gives the rest of a read back to the server.
    async fn cancel(self: &Arc<Self>, collector: &Ref, token: &str) -> Result<()> {
        let method = Method::repeatable("CancelRetrievePropertiesEx", collector, soap::element("token", token));
        match self.soap(&method, soap::nothing).await {
            // Not every server knows the method, and a read given back too late is given back.
            Err(error) if matches!(error.fault(), Fault::Other { .. } | Fault::InvalidArgument { .. }) => Ok(()),
            outcome => outcome,
        }
    }
}

/// How much of a read has come, by whatever requests; a server that never ends must not fill the memory.
#[derive(Default)]
pub(crate) struct Size {
    objects: AtomicUsize,
    bytes: AtomicUsize,
}

impl Size {
    fn too_large(&self, objects: usize, bytes: usize, settings: &Settings) -> Option<Fault> {
        let objects = self.objects.fetch_add(objects, Ordering::Relaxed) + objects;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = settings.largest_answer.saturating_mul(4);
        if objects > settings.largest_read {
            return Some(Fault::TooMany { limit: settings.largest_read });
        }
        (bytes > limit).then_some(Fault::TooLarge { limit })
    }

    /// Of a part that begins anew nothing is kept, so that nothing of it counts.
    fn take_off(&self, (objects, bytes): (usize, usize)) {
        self.objects.fetch_sub(objects, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
