//! `HTTPS_PROXY` and `NO_PROXY`, with a proxy of our own in this process.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use vsphere::{Client, Fault, Proxy, Settings};

use crate::vcsim::Vcsim;

/// Connects every request to one address and remembers what was asked.
pub(crate) struct Tunnel {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Tunnel {
    pub(crate) async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (target, seen) = (target.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    seen.lock().unwrap().push(head);
                    let mut server = TcpStream::connect(target).await.unwrap();
                    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                    // Either side may simply go away.
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                });
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn through(mut settings: Settings, environment: &[(&str, String)]) -> Client {
    settings.proxy = Proxy::from_environment(|name| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone()));
    settings.retries = 0;
    Client::new(settings).unwrap()
}

#[tokio::test]
async fn a_proxy_carries_everything_and_resolves_the_name() {
    let sim = Vcsim::start();
    let pair = sim.authority.issue(sim.dir.path(), "named", &["vcenter.example.test"]);
    sim.fault(&serde_json::json!({ "kind": "certificate", "certificate": pair.certificate, "key": pair.key }));
    let mut settings = sim.settings();
    let tunnel = Tunnel::to(settings.endpoint.to_string()).await;
    settings.endpoint.server = "vcenter.example.test".into();
    let port = settings.endpoint.port;
    for name in ["HTTPS_PROXY", "https_proxy"] {
        let client = through(settings.clone(), &[(name, format!("http://me:s3cr3t@{}", tunnel.address))]);
        client.tags().categories().await.unwrap();
        client.logout().await.unwrap();
        let asked = tunnel.asked().pop().unwrap();
        assert!(asked.starts_with(&format!("CONNECT vcenter.example.test:{port} HTTP/1.1")), "{asked}");
        assert!(asked.to_lowercase().contains("proxy-authorization: basic"), "{asked}");
    }
    assert_eq!(sim.sessions().soap, 0);
}

#[tokio::test]
async fn what_no_proxy_names_is_reached_directly() {
    let sim = Vcsim::start();
    let tunnel = Tunnel::to(sim.settings().endpoint.to_string()).await;
    for except in ["127.0.0.1", "127.0.0.0/8", ".example.com,127.0.0.1"] {
        for name in ["NO_PROXY", "no_proxy"] {
            let client = through(sim.settings(), &[("HTTPS_PROXY", format!("http://{}", tunnel.address)), (name, except.to_owned())]);
            client.about().await.unwrap();
        }
    }
    assert_eq!(tunnel.asked(), Vec::<String>::new());
    let client = through(sim.settings(), &[("HTTPS_PROXY", format!("http://{}", tunnel.address)), ("NO_PROXY", "10.0.0.0/8".to_owned())]);
    client.about().await.unwrap();
    assert_eq!(tunnel.asked().len(), 1);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_and_nothing_goes_around_it() {
    let sim = Vcsim::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let client = through(sim.settings(), &[("HTTPS_PROXY", format!("http://{address}"))]);
    let error = client.about().await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Connect(_)), "{error}");
    assert_eq!(sim.traffic().0, 0);
}
