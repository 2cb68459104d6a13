//! Where health and metrics are asked for: with the certificate that the cluster gives a Service, or without where there is none.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Nobody who only connects may keep others from being served.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// Accepts connections.
pub struct Listener {
    tcp: TcpListener,
    /// The folder with tls.crt and tls.key. Read anew for each connection, because the cluster replaces them.
    certificate: Option<PathBuf>,
}

impl Listener {
    /// Listens, with TLS where there is a folder with a certificate.
    pub async fn bind(address: SocketAddr, certificate: Option<PathBuf>) -> io::Result<Self> {
        if let Some(folder) = &certificate {
            acceptor(folder)?;
        }
        Ok(Self { tcp: TcpListener::bind(address).await?, certificate })
    }

    async fn connection(&self) -> io::Result<(Connection, SocketAddr)> {
        let (stream, address) = self.tcp.accept().await?;
        let Some(folder) = &self.certificate else { return Ok((Connection::Plain(stream), address)) };
        let shaken = tokio::time::timeout(HANDSHAKE, acceptor(folder)?.accept(stream)).await.map_err(io::Error::other)??;
        Ok((Connection::Tls(Box::new(shaken)), address))
    }
}

fn acceptor(folder: &Path) -> io::Result<TlsAcceptor> {
    let explain = |file: &str, error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", folder.join(file).display()));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(folder.join("tls.crt")).and_then(Iterator::collect);
    let chain = chain.map_err(|error| explain("tls.crt", &error))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).map_err(|error| explain("tls.key", &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| explain("", &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.connection().await {
                Ok(accepted) => return accepted,
                Err(error) => tracing::debug!(%error, "a connection for health or metrics came to nothing"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// A connection, with TLS or without.
pub enum Connection {
    /// Without.
    Plain(TcpStream),
    /// With.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
