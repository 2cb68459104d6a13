//! A small HTTPS server of our own, for what the simulator cannot play: another dialect, and a man in the middle.
//! It runs on a thread of its own, so that what it logs is not mistaken for the client's.

use std::{io, net::SocketAddr, sync::Arc, thread::JoinHandle, time::Duration};

use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    header::HeaderMap,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::pki::Pair;

pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Whole,
    /// The connection is lost behind the body.
    Cut,
    /// More is promised behind the body and never comes.
    Never,
    /// The connection is lost before the answer begins.
    Nothing,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.into(), end: End::Whole }
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves until dropped.
pub(crate) fn serve<R: Future<Output = Reply> + Send + 'static>(
    pair: &Pair,
    handler: impl Fn(Asked) -> R + Send + Sync + 'static,
) -> Server {
    let certificate = CertificateDer::from_pem_file(&pair.certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let handler = Arc::new(handler);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let accept = async {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
                    tokio::spawn(async move {
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        let service = service_fn(move |request| {
                            let handler = Arc::clone(&handler);
                            async move { answer(request, &*handler).await }
                        });
                        // A client that goes away is no failure of this server.
                        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            };
            tokio::select! { () = accept => {}, _ = stopped => {} }
        });
    });
    Server { address, stop: Some(stop), thread: Some(thread) }
}

async fn answer<R: Future<Output = Reply>>(
    request: Request<Incoming>,
    handler: &impl Fn(Asked) -> R,
) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let asked = Asked {
        method: head.method.to_string(),
        path,
        headers: head.headers,
        body: body.collect().await.map_err(io::Error::other)?.to_bytes().to_vec(),
    };
    let reply = handler(asked).await;
    let lost = || io::Error::other("lost on purpose");
    let begun = stream::iter([Ok(Frame::data(Bytes::from(reply.body.clone())))]);
    let body = match reply.end {
        End::Whole => BodyExt::boxed(Full::new(Bytes::from(reply.body)).map_err(|never| match never {})),
        End::Cut => {
            // The beginning goes out on its own, or it would be lost with the connection.
            let late = stream::once(async { tokio::time::sleep(Duration::from_millis(200)).await }).map(move |()| Err(lost()));
            BodyExt::boxed(StreamBody::new(begun.chain(late)))
        }
        End::Never => BodyExt::boxed(StreamBody::new(begun.chain(stream::pending()))),
        End::Nothing => return Err(lost()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status.try_into().unwrap();
    *response.headers_mut() = reply.headers;
    Ok(response)
}
